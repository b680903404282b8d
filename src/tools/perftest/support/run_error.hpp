// An error that ends a measurement or the program, as a sentence for the user.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

namespace cuda_nc::tools {

class run_error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The other process has ended. Only that process can say why.
class peer_gone : public run_error {
  public:
    peer_gone() : run_error("the other process is gone") {}
};

// Runs `prepare`; returns why it failed, or an empty text.
template <typename function>
std::string failure_of(function &&prepare) {
    try {
        prepare();
        return "";
    } catch (const run_error &failure) {
        return failure.what();
    } catch (const std::bad_alloc &) {
        return "not enough host memory";
    }
}

}  // namespace cuda_nc::tools
