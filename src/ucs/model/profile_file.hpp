// A machine's profile as a JSON file, one for each user, machine and GPU backend. Files are not
// trusted: a file is used as a whole, with every number in its range, or not at all.
#pragma once

#include <string>

#include "ucs/model/profile.hpp"

namespace cuda_nc::model {

constexpr int profile_format = 1;

// UCX_CUDA_NC_PROFILE, or HOST-BACKEND.json in the user's cache directory. Empty: no file.
std::string profile_path(const std::string &backend);

std::string to_text(const machine_profile &profile);

// False, with one sentence in *why_p: the text is not a profile of this format.
bool parse_profile(const std::string &text, machine_profile *profile_p, std::string *why_p);

// `*exists_p` false: there is no such file; not an error for users. Never waits (for a pipe, say).
bool read_profile(const std::string &path, machine_profile *profile_p, bool *exists_p,
                  std::string *why_p);

// Makes the directories of `path`. The file is replaced in one step: readers see the old one or the
// new one.
bool write_profile(const std::string &path, const machine_profile &profile, std::string *why_p);

}  // namespace cuda_nc::model
