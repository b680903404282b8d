#include "uct/cuda_nc/choice.hpp"

#include <algorithm>

#include "ucs/base/settings.hpp"
#include "ucs/base/text.hpp"
#include "ucs/gpu/presence.hpp"
#include "uct/cuda_nc/carrier/carrier.hpp"
#include "uct/cuda_nc/component.hpp"

namespace cuda_nc::uct {
namespace {

// What UCX means by an item of UCX_TLS that is no transport's name, as far as carriers go. A star
// at the end stands for any rest.
const struct {
    const char *name;
    std::vector<std::string> members;
} aliases[] = {
    {"mm", {"posix", "sysv", "xpmem"}},
    {"sm", {"posix", "sysv", "xpmem"}},
    {"shm", {"posix", "sysv", "xpmem"}},
    {"ib", {"rc_*", "ud_*", "dc_*"}},
    {"rc", {"rc_*"}},
    {"rc_v", {"rc_verbs"}},
    {"rc_x", {"rc_mlx5"}},
    {"ud", {"ud_*"}},
    {"ud_v", {"ud_verbs"}},
    {"ud_x", {"ud_mlx5"}},
    {"dc", {"dc_*"}},
    {"dc_x", {"dc_mlx5"}},
};

bool fits(const std::string &pattern, const std::string &name) {
    return pattern.back() == '*'
               ? name.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0
               : name == pattern;
}

bool is_meant(const std::string &item, const std::string &name) {
    if (!item.empty() && item[0] == '\\') {  // no alias
        return item.compare(1, std::string::npos, name) == 0;
    }
    return item == name || std::any_of(std::begin(aliases), std::end(aliases), [&](auto &alias) {
               return item == alias.name &&
                      std::any_of(alias.members.begin(), alias.members.end(),
                                  [&](auto &pattern) { return fits(pattern, name); });
           });
}

// A value of UCX_TLS, or of UCX_..._TLS of a program with a prefix of its own.
class tls_list {
  public:
    explicit tls_list(const std::string &text)
        : denies_(!text.empty() && text[0] == '^'), items_(split(text.substr(denies_), ',')) {}

    bool names_us() const { return !denies_ && has(transport_name); }
    bool allows_us() const {
        return denies_ ? !has(transport_name) : names_us() || items_[0] == "all";
    }
    // A list that names us asks for our carriers too. One that denies a transport means ours on it.
    bool allows(const std::string &carrier) const {
        return allows_us() && !(denies_ && has(carrier));
    }

  private:
    bool has(const std::string &name) const {
        return std::any_of(items_.begin(), items_.end(),
                           [&](const std::string &item) { return is_meant(item, name); });
    }

    bool denies_;
    std::vector<std::string> items_;
};

std::string texts_of(const std::vector<setting_of_ucx> &lists) {
    std::string all;
    for (const setting_of_ucx &one : lists) {
        all += (all.empty() ? "" : " ") + one.name + "=" + one.value;
    }
    return all;
}

}  // namespace

transport_choice choose_transport() {
    const settings &all = config();
    transport_choice chosen = {false, false, "", split_names(all.carriers)};
    if (!all.enable) {
        chosen.why = "UCX_CUDA_NC_ENABLE=n";
        return chosen;
    }
    if (all.transport != "auto") {
        chosen.on = chosen.asked = all.transport == "y";
        chosen.why = "UCX_CUDA_NC_TRANSPORT=" + all.transport;
        return chosen;
    }
    std::vector<tls_list> lists;
    for (const setting_of_ucx &one : all.tls_lists) {
        lists.emplace_back(one.value);
    }
    if (std::any_of(lists.begin(), lists.end(), [](auto &one) { return one.names_us(); })) {
        chosen.on = chosen.asked = true;
        chosen.why = texts_of(all.tls_lists) + " names it";
        return chosen;
    }
    const gpu::presence gpus = gpu::look_for_gpus();
    if (!gpus.possible) {
        chosen.why = gpus.why;
        return chosen;
    }
    const bool is_restricted =
        std::any_of(all.tls_lists.begin(), all.tls_lists.end(),
                    [](const setting_of_ucx &one) { return one.name == "UCX_TLS"; });
    if (is_restricted) {
        std::vector<std::string> &left = chosen.carriers;
        left.erase(std::remove_if(left.begin(), left.end(),
                                  [&](const std::string &carrier) {
                                      return std::none_of(
                                          lists.begin(), lists.end(),
                                          [&](auto &one) { return one.allows(carrier); });
                                  }),
                   left.end());
        if (left.empty() && !split_names(all.carriers).empty()) {
            chosen.why = texts_of(all.tls_lists) + " leaves out it or all its carriers";
            return chosen;
        }
    }
    chosen.on = true;
    chosen.why = gpus.why + (is_restricted ? ", and " + texts_of(all.tls_lists) + " allows it"
                                           : ", and UCX_TLS is not set");
    return chosen;
}

}  // namespace cuda_nc::uct
