// The kernel of a set of orders.
#pragma once

namespace cuda_nc::exec {

// Its argument is an order_set<few_in_set> or an order_set<many_in_set>; a thread block of
// set_threads threads for each piece.
const void *set_kernel(bool of_few) noexcept;

}  // namespace cuda_nc::exec
