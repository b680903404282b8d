// Any number of ranks through the MPI that this was compiled with; MPI ends the job where a rank is
// lost.
#pragma once

#include <mpi.h>

#include "tools/perftest/message/messenger.hpp"

namespace cuda_nc::tools {

class mpi_messenger final : public messenger {
  public:
    mpi_messenger();  // after MPI_Init

    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return size_; }
    std::unique_ptr<message_type> make_type(const layout &what) override;
    std::unique_ptr<message_type> make_contiguous(size_t bytes) override;
    bool sends_one_block_as_contiguous() const noexcept override { return true; }
    void send(const void *address, const message_type &type, int peer, int tag) override;
    void receive(void *address, const message_type &type, int peer, int tag) override;
    void start_send(const void *address, const message_type &type, int peer, int tag) override;
    void start_receive(void *address, const message_type &type, int peer, int tag) override;
    void finish() override;
    std::unique_ptr<message_exchange> make_exchange(
        const std::string &way, const void *from, void *to,
        const std::vector<exchanged_message> &messages) override;
    std::vector<std::string> gather(const std::string &mine) override;
    void barrier() override;

  private:
    int rank_ = 0, size_ = 1;
    std::vector<MPI_Request> started_;
};

}  // namespace cuda_nc::tools
