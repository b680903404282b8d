# Whole folders: a new script, document, result or test of these needs no line here.
EXTRA_DIST += .ci/run contrib docs python bench/results \
	$(wildcard $(srcdir)/examples) $(filter-out %/gtest,$(wildcard $(srcdir)/test/*))
dist-hook:
	find $(distdir) '(' -name __pycache__ -o -name .pytest_cache ')' -prune -exec rm -rf {} +
