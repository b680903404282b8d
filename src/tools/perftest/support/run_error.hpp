// What ends a measurement or the program: a sentence for the user.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

namespace cuda_nc::tools {

class run_error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The other process has ended: why, only that one can say.
class peer_gone : public run_error {
  public:
    peer_gone() : run_error("the other process is gone") {}
};

// What kept `prepare` from its end; empty: nothing.
template <typename function>
std::string trouble_of(function &&prepare) {
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
