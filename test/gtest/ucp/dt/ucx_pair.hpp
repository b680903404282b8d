// Two UCP workers in one process, and messages between them.
#pragma once

#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <string>
#include <vector>

namespace cuda_nc::test {

class ucx_pair {
  public:
    // `transports` as in UCX_TLS. Check ready() before use.
    explicit ucx_pair(const std::string &transports) {
        ucp_config_t *config = nullptr;
        ucp_params_t params = {};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM;
        if (ucp_config_read(nullptr, nullptr, &config) != UCS_OK) {
            return;
        }
        ucs_status_t status = ucp_config_modify(config, "TLS", transports.c_str());
        if (status == UCS_OK) {
            status = ucp_init(&params, config, &context_);
        }
        ucp_config_release(config);
        if (status != UCS_OK) {
            context_ = nullptr;
            return;
        }
        ucp_worker_params_t mode = {};
        mode.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        mode.thread_mode = UCS_THREAD_MODE_SERIALIZED;
        for (ucp_worker_h &one : workers_) {
            if (ucp_worker_create(context_, &mode, &one) != UCS_OK) {
                return;
            }
        }
        bool alone = transports == "self";  // reaches nobody else
        for (int from = 0; from < 2; ++from) {
            for (int to = 0; to < 2; ++to) {
                if ((alone || from == to) && !(from == to && alone)) {
                    continue;
                }
                if (!connect(from, to)) {
                    return;
                }
            }
        }
        ready_ = true;
    }

    ~ucx_pair() {
        for (auto &row : endpoints_) {
            for (ucp_ep_h one : row) {
                if (one != nullptr) {
                    ucp_request_param_t param = {};
                    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
                    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
                    wait(ucp_ep_close_nbx(one, &param));
                }
            }
        }
        for (ucp_worker_h one : workers_) {
            if (one != nullptr) {
                ucp_worker_destroy(one);
            }
        }
        if (context_ != nullptr) {
            ucp_cleanup(context_);
        }
    }

    ucx_pair(const ucx_pair &) = delete;
    ucx_pair &operator=(const ucx_pair &) = delete;

    bool ready() const { return ready_; }
    ucp_worker_h worker(int i) const { return workers_[i]; }
    ucp_context_h context() const { return context_; }
    ucp_ep_h endpoint(int from, int to) const { return endpoints_[from][to]; }

    void *send(int from, int to, const void *buffer, size_t count, ucp_datatype_t type,
               ucp_tag_t tag) {
        ucp_request_param_t param = with(type);
        return ucp_tag_send_nbx(endpoints_[from][to], buffer, count, tag, &param);
    }

    void *receive(int at, void *buffer, size_t count, ucp_datatype_t type, ucp_tag_t tag) {
        ucp_request_param_t param = with(type);
        return ucp_tag_recv_nbx(workers_[at], buffer, count, tag, ~ucp_tag_t(0), &param);
    }

    void progress() {
        ucp_worker_progress(workers_[0]);
        ucp_worker_progress(workers_[1]);
    }

    // Until the message is known to have arrived without a receive to take it.
    void progress_until_unexpected(int at, ucp_tag_t tag) {
        ucp_tag_recv_info_t info;
        auto end = deadline();
        while (ucp_tag_probe_nb(workers_[at], tag, ~ucp_tag_t(0), 0, &info) == nullptr) {
            progress();
            ASSERT_LT(std::chrono::steady_clock::now(), end) << "the message does not arrive";
        }
    }

    // Its end and its result; frees the request.
    ucs_status_t wait(void *request) {
        return wait(request, [this] { progress(); });
    }

    template <typename function>
    static ucs_status_t wait(void *request, const function &make_progress) {
        if (request == nullptr) {
            return UCS_OK;
        }
        if (UCS_PTR_IS_ERR(request)) {
            return UCS_PTR_STATUS(request);
        }
        auto end = deadline();
        ucs_status_t status;
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
            make_progress();
            if (std::chrono::steady_clock::now() > end) {
                ADD_FAILURE() << "a request does not end";
                std::abort();
            }
        }
        ucp_request_free(request);
        return status;
    }

  private:
    static std::chrono::steady_clock::time_point deadline() {
        return std::chrono::steady_clock::now() + std::chrono::seconds(60);
    }

    static ucp_request_param_t with(ucp_datatype_t type) {
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = type;
        return param;
    }

    bool connect(int from, int to) {
        ucp_address_t *address = nullptr;
        size_t length = 0;
        if (ucp_worker_get_address(workers_[to], &address, &length) != UCS_OK) {
            return false;
        }
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        params.address = address;
        ucs_status_t status = ucp_ep_create(workers_[from], &params, &endpoints_[from][to]);
        ucp_worker_release_address(workers_[to], address);
        return status == UCS_OK;
    }

    ucp_context_h context_ = nullptr;
    ucp_worker_h workers_[2] = {};
    ucp_ep_h endpoints_[2][2] = {};
    bool ready_ = false;
};

}  // namespace cuda_nc::test
