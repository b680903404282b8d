# The test programs, by one MPI's compiler:
#     make -f test/mpi/programs.mk MPICXX=mpicxx OUTPUT=DIRECTORY
here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
MPICXX ?= mpicxx
OUTPUT ?= .
# OMPI_SKIP_MPICXX: of Open MPI 4 the C bindings alone.
flags := -std=c++17 -O2 -g -Wall -Wextra -Wshadow -Werror -I$(here) -DOMPI_SKIP_MPICXX=1
headers := $(wildcard $(here)*/*.hpp)

objects = $(patsubst $(here)%.cc,$(OUTPUT)/%.o,$(wildcard $(here)$(1)/*.cc))

all: $(OUTPUT)/random-types $(OUTPUT)/operations-test $(OUTPUT)/stock-wrong-bytes \
	$(OUTPUT)/guards-test $(OUTPUT)/windows-test $(OUTPUT)/local-work

$(OUTPUT)/random-types: $(call objects,random_types) $(call objects,support)
	$(MPICXX) $^ -o $@ -ldl

$(OUTPUT)/operations-test: $(call objects,operations) $(call objects,support)
	$(MPICXX) $^ -o $@ -ldl -lpthread

$(OUTPUT)/guards-test: $(call objects,guards) $(call objects,support)
	$(MPICXX) $^ -o $@ -ldl

$(OUTPUT)/windows-test: $(call objects,windows) $(call objects,support)
	$(MPICXX) $^ -o $@ -ldl

$(OUTPUT)/local-work: $(call objects,local_work) $(OUTPUT)/operations/typed_buffer.o \
		$(call objects,support)
	$(MPICXX) $^ -o $@ -ldl -lpthread

# PRODUCT: flags for the C API and UCX's headers
$(OUTPUT)/c-api: $(wildcard $(here)c_api/*.cc) $(call objects,support) $(headers)
	$(MPICXX) $(flags) $(filter-out %.hpp,$^) -o $@ $(PRODUCT) -ldl

$(OUTPUT)/stock-wrong-bytes: $(OUTPUT)/stock_wrong_bytes.o
	$(MPICXX) $^ -o $@

$(OUTPUT)/%.o: $(here)%.cc $(headers)
	@mkdir -p $(@D)
	$(MPICXX) $(flags) -c $< -o $@
