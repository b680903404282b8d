#include "uct/cuda_nc/ucx/self_check.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

// The names by which a table's members are known.
#define EXPORTED extern "C" __attribute__((visibility("default")))
EXPORTED ucs_status_t uct_base_iface_estimate_perf(cuda_nc::uct::abi::uct_iface *, void *) {
    return UCS_OK;
}
EXPORTED int uct_base_ep_is_connected(const cuda_nc::uct::abi::uct_ep *, const void *) {
    return 0;
}
EXPORTED ucs_status_t uct_iface_base_query_v2(cuda_nc::uct::abi::uct_iface *, void *) {
    return UCS_OK;
}

namespace cuda_nc::uct {
namespace {

using namespace abi;

template <typename to, typename from>
to as(from *function) {
    return reinterpret_cast<to>(reinterpret_cast<void (*)()>(function));
}

template <typename table>
table right_table() {
    table made = {};
    made.iface_estimate_perf = as<decltype(made.iface_estimate_perf)>(uct_base_iface_estimate_perf);
    made.ep_is_connected = as<decltype(made.ep_is_connected)>(uct_base_ep_is_connected);
    return made;
}

template <typename table>
table right_table_with_query() {
    table made = right_table<table>();
    made.iface_query_v2 = as<decltype(made.iface_query_v2)>(uct_iface_base_query_v2);
    return made;
}

// As much of a UCX as is looked at, with the transport self alone.
class self_check : public testing::Test {
  protected:
    self_check() {
        now_ = this;
        components_ = {&component_.list, &component_.list};
        component_.list = {&components_, &components_};
        component_.tl_list = {&transport_.list, &transport_.list};
        transport_.list = {&component_.tl_list, &component_.tl_list};
        std::strcpy(component_.name, "self");
        std::strcpy(transport_.name, "self");
        md_.component = &component_;
        md_ops_.query = [](uct_md *, void *attr) {
            now_->describe(*static_cast<uct_md_attr_v2 *>(attr));
            return UCS_OK;
        };
        md_.ops = &md_ops_;
        iface_.md = &md_;
        iface_.worker = &worker_;
        iface_.super.ops.iface_query = [](uct_iface *, uct_iface_attr *attr) {
            *attr = now_->attr_;
            return UCS_OK;
        };
        attr_.iface_addr_len = 8;
        attr_.cap.flags = cap_flag::am_short | cap_flag::am_bcopy | cap_flag::cb_sync;
        set_api();
    }
    ~self_check() override { EXPECT_EQ(open_, 0) << "all that was opened is closed"; }

    const char *mismatch(release which, const void *table) {
        api_.which = which;
        iface_.internal_ops = table;
        return find_mismatch(api_);
    }
    const char *mismatch() { return mismatch(release::v1_22, &table_); }

    // As UCX's base does, and the transport self on top of it. What only later releases have is
    // left as it was.
    void describe(uct_md_attr_v2 &attr) const {
        uct_md_attr_v2 said = {};
        said.max_reg = SIZE_MAX;
        said.reg_mem_types = said.access_mem_types = 1;
        said.reg_alignment = alignment_;
        said.required_mem_flags =
            api_.which >= release::v1_22 ? uint8_t(0) : attr.required_mem_flags;
        std::memset(said.local_cpus, 0xff, sizeof(said.local_cpus));
        attr = said;
    }

    inline static self_check *now_;
    size_t alignment_ = 1;
    uct_md_ops md_ops_ = {};
    int open_ = 0, worker_ = 0;
    ucs_list_link components_ = {};
    uct_component component_ = {};
    uct_tl transport_ = {};
    uct_md md_ = {};
    uct_base_iface iface_ = {};
    uct_iface_attr attr_ = {};
    uct_tl_resource_desc device_ = {"self", "memory", 0, 0};
    uct_iface_internal_ops_1_22 table_ = right_table_with_query<uct_iface_internal_ops_1_22>();
    int handler_ = 7;  // set in place of this one
    ucx_api api_ = {};

  private:
    template <typename type>
    static ucs_status_t open(type **object_p, void *object) {
        ++now_->open_;
        *object_p = static_cast<type *>(object);
        return UCS_OK;
    }
    void set_api() {
        api_.uct_components_list = &components_;
        api_.uct_md_config_read = [](uct_component *, const char *, const char *, void **config_p) {
            return open(config_p, now_);
        };
        api_.uct_md_iface_config_read = [](uct_md *, const char *, const char *, const char *,
                                           uct_iface_config **config_p) {
            return open(config_p, now_);
        };
        api_.uct_config_release = [](void *) { --now_->open_; };
        api_.uct_md_open = [](uct_component *, const char *, const void *, uct_md **md_p) {
            return open(md_p, &now_->md_);
        };
        api_.uct_md_close = [](uct_md *) { --now_->open_; };
        api_.uct_md_query_tl_resources = [](uct_md *, uct_tl_resource_desc **all_p,
                                            unsigned *number_p) {
            *number_p = 1;
            return open(all_p, &now_->device_);
        };
        api_.uct_release_tl_resource_list = [](uct_tl_resource_desc *) { --now_->open_; };
        api_.ucs_async_context_create = [](int, void **async_p) { return open(async_p, now_); };
        api_.ucs_async_context_destroy = [](void *) { --now_->open_; };
        api_.uct_worker_create = [](void *, int, void **worker_p) {
            return open(worker_p, &now_->worker_);
        };
        api_.uct_worker_destroy = [](void *) { --now_->open_; };
        api_.uct_iface_open = [](uct_md *, void *, const uct_iface_params *,
                                 const uct_iface_config *,
                                 uct_iface **iface_p) { return open(iface_p, &now_->iface_); };
        api_.uct_iface_close = [](uct_iface *) { --now_->open_; };
        api_.uct_iface_set_am_handler = [](uct_iface *, uint8_t id, uct_am_callback callback,
                                           void *arg, uint32_t flags) {
            now_->iface_.am[id - 7 + now_->handler_] = {callback, arg, flags};
            return UCS_OK;
        };
    }
};

TEST_F(self_check, finds_nothing_where_all_is_as_in_the_release) {
    const auto v1_19 = right_table<uct_iface_internal_ops_1_19>();
    const auto v1_20 = right_table_with_query<uct_iface_internal_ops_1_20>();
    const auto v1_21 = right_table<uct_iface_internal_ops_1_21>();
    EXPECT_EQ(mismatch(release::v1_19, &v1_19), nullptr);
    EXPECT_EQ(mismatch(release::v1_20, &v1_20), nullptr);
    EXPECT_EQ(mismatch(release::v1_21, &v1_21), nullptr);
    EXPECT_EQ(mismatch(), nullptr);
}

TEST_F(self_check, finds_the_table_of_another_release) {
    alignas(8) char older[sizeof(uct_iface_internal_ops_1_22)] = {};
    const auto v1_19 = right_table<uct_iface_internal_ops_1_19>();
    std::memcpy(older, &v1_19, sizeof(v1_19));
    EXPECT_STREQ(mismatch(release::v1_20, older), "uct_iface_internal_ops");
    EXPECT_STREQ(mismatch(release::v1_22, older), "uct_iface_internal_ops");
    EXPECT_STREQ(mismatch(release::v1_19, &table_), "uct_iface_internal_ops");
    EXPECT_STREQ(mismatch(release::v1_21, &table_), "uct_iface_internal_ops");
}

TEST_F(self_check, finds_each_member_of_a_table_that_differs) {
    const uct_iface_internal_ops_1_22 right = table_;
    table_.iface_query_v2 = nullptr;
    EXPECT_STREQ(mismatch(), "uct_iface_internal_ops");
    table_ = right;
    table_.iface_estimate_perf = as<decltype(table_.iface_estimate_perf)>(uct_base_ep_is_connected);
    EXPECT_STREQ(mismatch(), "uct_iface_internal_ops");
    table_ = right;
    table_.ep_is_connected = as<decltype(table_.ep_is_connected)>(std::abort);
    EXPECT_STREQ(mismatch(), "uct_iface_internal_ops");
}

TEST_F(self_check, finds_an_interface_that_differs) {
    handler_ = 8;
    EXPECT_STREQ(mismatch(), "uct_base_iface.am");
    handler_ = 7;
    iface_.md = nullptr;
    EXPECT_STREQ(mismatch(), "uct_base_iface.md");
    iface_.md = &md_;
    iface_.worker = nullptr;
    EXPECT_STREQ(mismatch(), "uct_base_iface.worker");
    iface_.worker = &worker_;
    attr_.iface_addr_len = 16;
    EXPECT_STREQ(mismatch(), "uct_iface_attr");
    attr_.iface_addr_len = 8;
    attr_.cap.flags = 0;
    EXPECT_STREQ(mismatch(), "uct_iface_attr");
}

TEST_F(self_check, finds_a_component_that_differs) {
    device_.dev_name[0] = 'x';
    EXPECT_STREQ(mismatch(), "uct_tl_resource_desc");
    transport_.name[0] = 'x';
    EXPECT_STREQ(mismatch(), "uct_component.tl_list");
    component_.tl_list = {&component_.tl_list, &component_.tl_list};
    EXPECT_STREQ(mismatch(), "uct_component.tl_list");
    md_.component = nullptr;
    EXPECT_STREQ(mismatch(), "uct_md.component");
    component_.name[0] = 'x';
    EXPECT_STREQ(mismatch(), "uct_component.name");
}

TEST_F(self_check, looks_at_the_attributes_of_memory_domains) {
    alignment_ = 4096;
    EXPECT_STREQ(mismatch(), "uct_md_attr_v2");
}

}  // namespace
}  // namespace cuda_nc::uct
