#include "ucp/dt/shape_text.hpp"

#include <cinttypes>
#include <cstdio>

namespace cuda_nc::dt {

std::string shape_text(const layout_view &view) {
    char text[96] = "empty";
    switch (view.kind) {
        case shape::empty:
            break;
        case shape::contiguous:
            std::snprintf(text, sizeof(text), "contiguous");
            break;
        case shape::strided:
            if (view.num_dims > 1) {
                std::snprintf(text, sizeof(text), "strided %u-D %" PRIu64 " B", view.num_dims,
                              view.list_size);
            } else {
                std::snprintf(text, sizeof(text), "strided %" PRIu64 " B", view.list_size);
            }
            break;
        case shape::repeated:
            std::snprintf(text, sizeof(text), "repeated %" PRIu64 " blocks, %" PRIu64 " B",
                          view.num_blocks, view.list_size);
            break;
        case shape::irregular:
            if (view.block_length != 0) {
                std::snprintf(text, sizeof(text), "irregular %" PRIu64 " B", view.block_length);
            } else {
                std::snprintf(text, sizeof(text), "irregular ~%" PRIu64 " B",
                              view.num_blocks == 0 ? 0 : view.list_size / view.num_blocks);
            }
            break;
    }
    return text;
}

}  // namespace cuda_nc::dt
