#include "ucs/model/profile_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "ucs/base/settings.hpp"

namespace cuda_nc::model {
namespace {

using nlohmann::json;

constexpr size_t most_bytes = size_t(1) << 20;
constexpr size_t most_gpus = 64, most_figures = 1024, most_text = 256;
constexpr const char *product = "ucx-cuda-nc machine profile";

// Thrown with one sentence for the user.
struct bad_profile : std::runtime_error {
    using std::runtime_error::runtime_error;
};

const json &member(const json &of, const char *name) {
    const auto found = of.is_object() ? of.find(name) : of.end();
    if (!of.is_object() || found == of.end()) {
        throw bad_profile(std::string("it has no \"") + name + "\"");
    }
    return *found;
}

double number(const json &of, const char *name, double least, double most) {
    const json &value = member(of, name);
    const double is = value.is_number() ? value.get<double>() : NAN;
    if (!(is >= least && is <= most)) {
        throw bad_profile(std::string("its \"") + name + "\" is out of range");
    }
    return is;
}

// Microseconds, or microseconds for a MiB: from a TB/s to a KB/s.
double time_of(const json &of, const char *name) {
    return number(of, name, 1e-4, 1e9);
}

std::string text_of(const json &of, const char *name) {
    const json &value = member(of, name);
    if (!value.is_string() || value.get_ref<const std::string &>().size() > most_text) {
        throw bad_profile(std::string("its \"") + name + "\" is not a short text");
    }
    std::string text = value.get<std::string>();
    for (char &c : text) {  // it may be printed
        c = static_cast<unsigned char>(c) < ' ' || c == 127 ? '?' : c;
    }
    return text;
}

const json &list(const json &of, const char *name, size_t most) {
    const json &value = member(of, name);
    if (!value.is_array() || value.size() > most) {
        throw bad_profile(std::string("its \"") + name + "\" is not a list of at most " +
                          std::to_string(most));
    }
    return value;
}

figure figure_of(const json &from) {
    figure one;
    const std::string name = text_of(from, "family"), dir = text_of(from, "direction");
    unsigned which = 0;
    while (which < num_families && name != name_of(static_cast<family>(which))) {
        ++which;
    }
    if (which == num_families || (dir != "pack" && dir != "unpack")) {
        throw bad_profile("it has a figure of an unknown kind");
    }
    one.what = static_cast<family>(which);
    one.dir = dir == "pack" ? gpu::direction::pack : gpu::direction::unpack;
    one.align_log2 = static_cast<uint8_t>(number(from, "align_log2", 0, 4));
    one.block = static_cast<uint32_t>(number(from, "block", 1, 1 << 30));
    one.near = time_of(from, "near");
    one.far = time_of(from, "far");
    return one;
}

json to_json(const moving &by) {
    json figures = json::array();
    for (const figure &one : by.figures) {
        figures.push_back({{"family", name_of(one.what)},
                           {"direction", one.dir == gpu::direction::pack ? "pack" : "unpack"},
                           {"align_log2", one.align_log2},
                           {"block", one.block},
                           {"near", one.near},
                           {"far", one.far}});
    }
    return {{"call", by.call},
            {"cache_size", by.cache_size},
            {"near_copy", by.near_copy},
            {"far_copy", by.far_copy},
            {"figures", std::move(figures)}};
}

moving moving_of(const json &from) {
    moving by;
    by.call = time_of(from, "call");
    by.cache_size = static_cast<uint64_t>(number(from, "cache_size", 1024, 1e12));
    by.near_copy = time_of(from, "near_copy");
    by.far_copy = time_of(from, "far_copy");
    for (const json &one : list(from, "figures", most_figures)) {
        by.figures.push_back(figure_of(one));
    }
    return by;
}

json to_json(const gpu::kernel_rules &rules) {
    json all = json::object();
    for (const gpu::kernel_rule &one : gpu::all_kernel_rules) {
        all[one.name] = rules.*one.value;
    }
    return all;
}

// Older files lack some rules or all; those keep their usual values.
gpu::kernel_rules rules_of(const json &of) {
    gpu::kernel_rules rules;
    if (!of.contains("rules")) {
        return rules;
    }
    const json &from = member(of, "rules");
    if (!from.is_object()) {
        throw bad_profile("its \"rules\" is not an object");
    }
    for (const gpu::kernel_rule &one : gpu::all_kernel_rules) {
        if (!from.contains(one.name)) {
            continue;
        }
        const json &value = from[one.name];
        if (!value.is_number_unsigned() || !one.allows(value.get<uint64_t>())) {
            throw bad_profile(std::string("its \"") + one.name + "\" is out of range");
        }
        rules.*one.value = value.get<uint32_t>();
    }
    return rules;
}

gpu_profile gpu_of(const json &from) {
    gpu_profile one;
    one.measured = true;
    one.name = text_of(from, "name");
    one.bus_id = text_of(from, "bus_id");
    one.completion = time_of(from, "completion");
    one.copy_completion = time_of(from, "copy_completion");
    one.down = time_of(from, "down");
    one.up = time_of(from, "up");
    one.moves = moving_of(member(from, "moves"));
    one.rules = rules_of(from);
    return one;
}

machine_profile profile_of(const json &from) {
    if (!from.is_object() || text_of(from, "product") != product) {
        throw bad_profile("it is not a machine profile");
    }
    if (number(from, "format", 0, 1e6) != profile_format) {
        throw bad_profile("it is of another release");
    }
    machine_profile made;
    made.measured = true;
    made.host = text_of(from, "host");
    made.backend = text_of(from, "backend");
    made.date = text_of(from, "date");
    made.host_moves = moving_of(member(from, "host_moves"));
    for (const json &one : list(from, "gpus", most_gpus)) {
        made.gpus.push_back(gpu_of(one));
    }
    for (const json &one : list(from, "links", most_gpus * most_gpus)) {
        made.links.push_back({text_of(one, "from"), text_of(one, "to"), time_of(one, "copy")});
    }
    return made;
}

std::string host_name() {
    char name[256] = "";
    gethostname(name, sizeof(name) - 1);
    std::string text = name[0] != '\0' ? name : "localhost";
    for (char &c : text) {
        c = c == '/' || static_cast<unsigned char>(c) <= ' ' ? '_' : c;
    }
    return text;
}

bool make_directories(const std::string &path) {
    for (size_t slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
        if (mkdir(path.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST) {
            return false;
        }
    }
    return true;
}

bool write_all(int file, const std::string &text) {
    for (size_t done = 0; done < text.size();) {
        const ssize_t wrote = write(file, text.data() + done, text.size() - done);
        if (wrote < 0 && errno != EINTR) {
            return false;
        }
        done += wrote > 0 ? static_cast<size_t>(wrote) : 0;
    }
    return fsync(file) == 0 || errno == EINVAL;
}

}  // namespace

std::string profile_path(const std::string &backend) {
    const std::string &setting = config().profile;
    if (setting == "none") {
        return "";
    }
    if (setting != "auto") {
        return setting;
    }
    const std::string &cache = config().cache_home;
    return cache.empty() ? "" : cache + "/ucx-cuda-nc/" + host_name() + "-" + backend + ".json";
}

std::string to_text(const machine_profile &profile) {
    json gpus = json::array(), links = json::array();
    for (const gpu_profile &one : profile.gpus) {
        gpus.push_back({{"name", one.name},
                        {"bus_id", one.bus_id},
                        {"completion", one.completion},
                        {"copy_completion", one.copy_completion},
                        {"down", one.down},
                        {"up", one.up},
                        {"moves", to_json(one.moves)},
                        {"rules", to_json(one.rules)}});
    }
    for (const link_profile &one : profile.links) {
        links.push_back({{"from", one.from}, {"to", one.to}, {"copy", one.copy}});
    }
    const json all = {{"product", product},
                      {"format", profile_format},
                      {"units", "microseconds; near, far, copy, down, up: for each MiB"},
                      {"host", profile.host.empty() ? host_name() : profile.host},
                      {"backend", profile.backend},
                      {"date", profile.date},
                      {"host_moves", to_json(profile.host_moves)},
                      {"gpus", std::move(gpus)},
                      {"links", std::move(links)}};
    return all.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

bool parse_profile(const std::string &text, machine_profile *profile_p, std::string *why_p) {
    try {
        const json all = json::parse(text, nullptr, false);
        if (all.is_discarded()) {
            throw bad_profile("it is no JSON");
        }
        *profile_p = profile_of(all);
        return true;
    } catch (const std::exception &wrong) {
        *why_p = wrong.what();
        return false;
    }
}

bool read_profile(const std::string &path, machine_profile *profile_p, bool *exists_p,
                  std::string *why_p) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *exists_p = file >= 0 || (errno != ENOENT && errno != ENOTDIR);
    if (file < 0) {
        *why_p = std::strerror(errno);
        return false;
    }
    struct stat about;
    std::string text, fault;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        fault = "it is not a regular file";
    }
    char piece[16384];
    for (ssize_t got = 1; fault.empty() && got != 0;) {
        got = read(file, piece, sizeof(piece));
        if (got < 0 && errno != EINTR) {
            fault = std::strerror(errno);
        } else if (got > 0) {
            text.append(piece, static_cast<size_t>(got));
        }
        if (text.size() > most_bytes) {
            fault = "it is larger than any profile";
        }
    }
    close(file);
    if (!fault.empty()) {
        *why_p = fault;
        return false;
    }
    return parse_profile(text, profile_p, why_p);
}

bool write_profile(const std::string &path, const machine_profile &profile, std::string *why_p) {
    const std::string text = to_text(profile);
    std::string temporary = path + ".XXXXXX";
    const int file = make_directories(path) ? mkostemp(&temporary[0], O_CLOEXEC) : -1;
    bool good = file >= 0 && write_all(file, text);
    const int fault = errno;
    if (file >= 0) {
        good = close(file) == 0 && good;
        good = good && std::rename(temporary.c_str(), path.c_str()) == 0;
        if (!good) {
            *why_p = std::strerror(errno != 0 ? errno : fault);
            unlink(temporary.c_str());
            return false;
        }
        return true;
    }
    *why_p = std::strerror(fault);
    return false;
}

}  // namespace cuda_nc::model
