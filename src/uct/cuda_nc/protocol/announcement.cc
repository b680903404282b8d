#include "uct/cuda_nc/protocol/announcement.hpp"

#include <cstring>

namespace cuda_nc::uct {

using namespace wire;

namespace {

constexpr uint8_t has_port = 1, has_source = 2, is_list = 4;

// One record behind the other.
class writer {
  public:
    explicit writer(void *to) noexcept : begin_(static_cast<char *>(to)), at_(begin_) {}
    template <class Record>
    void write(const Record &one) noexcept {
        std::memcpy(at_, &one, sizeof(one));
        at_ += sizeof(one);
    }
    size_t written() const noexcept { return static_cast<size_t>(at_ - begin_); }

  private:
    char *const begin_;
    char *at_;
};

class reader {
  public:
    reader(const void *from, size_t length) noexcept
        : begin_(static_cast<const char *>(from)), at_(begin_), end_(begin_ + length) {}
    // False: there is less.
    template <class Record>
    bool read(Record *one_p) noexcept {
        if (static_cast<size_t>(end_ - at_) < sizeof(*one_p)) {
            return false;
        }
        std::memcpy(one_p, at_, sizeof(*one_p));
        at_ += sizeof(*one_p);
        return true;
    }
    size_t position() const noexcept { return static_cast<size_t>(at_ - begin_); }
    size_t left() const noexcept { return static_cast<size_t>(end_ - at_); }

  private:
    const char *const begin_, *at_, *const end_;
};

bool read_port(reader &from, sender_offer *offer_p) noexcept {
    port_part port;
    if (!from.read(&port)) {
        return false;
    }
    offer_p->channels = port.channels;
    offer_p->sequence = port.sequence;
    offer_p->credits = port.credits;
    offer_p->memory = port.memory;
    return true;
}

bool read_source(reader &from, const announcement_head &head,
                 source_descriptor *source_p) noexcept {
    source_part part;
    if (head.num_dims > max_dims || !from.read(&part)) {
        return false;
    }
    source_p->allocation = part.allocation;
    source_p->address = part.address;
    source_p->displacement_0 = part.displacement_0;
    source_p->memory = part.memory;
    source_p->is_list = (head.parts & is_list) != 0 ? 1 : 0;
    source_p->num_dims = head.num_dims;
    source_p->block_length = part.block_length;
    source_p->first_displacement = part.first_displacement;
    for (uint32_t d = 0; d < head.num_dims; ++d) {
        if (!from.read(&source_p->dims[d])) {
            return false;
        }
    }
    return true;
}

}  // namespace

size_t write_announcement(const announcement &what, void *to) noexcept {
    const sender_offer &offer = what.offer.offer;
    const source_descriptor &source = what.offer.source;
    const bool with_port = offer.channels != 0;
    const bool with_source = source.allocation != 0 && source.num_dims <= max_dims;
    announcement_head head = {};
    head.version = protocol_version;
    head.kind = control_kind::early_offer;
    head.parts = static_cast<uint8_t>((with_port ? has_port : 0) | (with_source ? has_source : 0) |
                                      (with_source && source.is_list != 0 ? is_list : 0));
    head.num_dims = with_source ? static_cast<uint8_t>(source.num_dims) : uint8_t{0};
    head.flags = offer.flags;
    head.message = what.message;
    head.identity = what.identity;
    head.hash_low = offer.hash_low;
    head.hash_high = offer.hash_high;
    std::memcpy(head.gpu, offer.gpu, sizeof(head.gpu));
    head.process = offer.process;
    writer all(to);
    all.write(head);
    if (with_port) {
        all.write(port_part{offer.channels, 0, offer.sequence, offer.credits, offer.memory});
    }
    if (with_source) {
        all.write(source_part{source.allocation, source.address, source.displacement_0,
                              source.memory, source.block_length, source.first_displacement});
        for (uint32_t d = 0; d < source.num_dims; ++d) {
            all.write(source.dims[d]);
        }
    }
    return all.written();
}

size_t read_announcement(const void *message, size_t length, announcement *what_p) noexcept {
    reader all(message, length);
    announcement_head head;
    if (!all.read(&head) || head.version != protocol_version ||
        head.kind != control_kind::early_offer) {
        return 0;
    }
    *what_p = {};
    what_p->message = head.message;
    what_p->identity = head.identity;
    sender_offer &offer = what_p->offer.offer;
    offer.flags = head.flags;
    std::memcpy(offer.gpu, head.gpu, sizeof(offer.gpu));
    offer.process = head.process;
    offer.hash_low = head.hash_low;
    offer.hash_high = head.hash_high;
    const bool whole =
        ((head.parts & has_port) == 0 || read_port(all, &offer)) &&
        ((head.parts & has_source) == 0 || read_source(all, head, &what_p->offer.source)) &&
        all.left() >= sizeof(rts_head);
    return whole ? all.position() : 0;
}

}  // namespace cuda_nc::uct
