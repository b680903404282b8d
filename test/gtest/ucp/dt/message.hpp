// One message on its way between two buffers, as UCP would carry it.
#pragma once

#include "ucp/dt/oracle.hpp"
#include "ucp/dt/request_state.hpp"

namespace cuda_nc::test {

class message {
  public:
    message(random_engine &random, const datatype &type, buffer::place from, buffer::place to,
            size_t longest_fragment)
        : what_(type.make_layout()),
          source_(type, from, random),
          target_(type, to, random),
          fragments_(cut(random, source_.packed_size(), longest_fragment)) {}

    // False, with a failure of the test, where request_state refuses.
    bool start() {
        reader_ = dt::request_state::start_pack(what_, source_.base(), source_.info());
        writer_ = dt::request_state::start_unpack(what_, target_.base(), target_.info());
        EXPECT_NE(reader_, nullptr);
        EXPECT_NE(writer_, nullptr);
        return reader_ != nullptr && writer_ != nullptr;
    }

    bool done() const { return next_ == fragments_.size(); }

    // Carries one fragment.
    ucs_status_t step() {
        fragment one = fragments_[next_++];
        bytes piece(one.length);
        EXPECT_EQ(reader_->pack(one.offset, piece.data(), one.length), one.length);
        return writer_->unpack(one.offset, piece.data(), one.length);
    }

    // Ends it; `arrived` says whether the bytes must be there.
    void end(bool arrived) {
        reader_->finish();
        writer_->finish();
        if (arrived) {
            bytes packed = source_.packed();
            target_.expect(0, packed.data(), packed.size());
            EXPECT_TRUE(target_.is_as_expected());
        }
        EXPECT_TRUE(source_.is_as_expected());
    }

  private:
    layout_ref what_;
    buffer source_, target_;
    std::vector<fragment> fragments_;
    size_t next_ = 0;
    dt::request_state *reader_ = nullptr, *writer_ = nullptr;
};

}  // namespace cuda_nc::test
