#include "bench/stencil_exchange.hpp"

namespace {

constexpr stencil_side sides[] = {stencil_side::low, stencil_side::high};

// A face on its way: the tag is the side to which it goes.
int sent_tag(stencil_side side) {
    return side == stencil_side::low ? 0 : 1;
}
int received_tag(stencil_side side) {
    return 1 - sent_tag(side);
}

MPI_Datatype subarray(const stencil_grid &grid, const stencil_region &region) {
    int sizes[3], subsizes[3], starts[3];
    for (int d = 0; d < 3; ++d) {
        sizes[d] = grid.across();
        subsizes[d] = region.to[d] - region.from[d];
        starts[d] = region.from[d];
    }
    MPI_Datatype type;
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

// By side.
struct face_types {
    explicit face_types(const stencil_grid &grid) {
        for (int side = 0; side < 2; ++side) {
            sent[side] = subarray(grid, grid.face(sides[side]));
            received[side] = subarray(grid, grid.halo(sides[side]));
        }
    }
    ~face_types() {
        for (int side = 0; side < 2; ++side) {
            MPI_Type_free(&sent[side]);
            MPI_Type_free(&received[side]);
        }
    }
    face_types(const face_types &) = delete;
    face_types &operator=(const face_types &) = delete;

    MPI_Datatype sent[2], received[2];
};

class typed : public stencil_exchange {
  public:
    explicit typed(stencil_state &state) : state_(state), types_(state.grid) {}

    void start(int field) override {
        double *data = state_.fields[size_t(field)].data();
        MPI_Request *request = requests_;
        for (stencil_side side : sides) {
            MPI_Irecv(data, 1, types_.received[int(side)], state_.grid.neighbour(side),
                      received_tag(side), state_.line, request++);
        }
        for (stencil_side side : sides) {
            MPI_Isend(data, 1, types_.sent[int(side)], state_.grid.neighbour(side), sent_tag(side),
                      state_.line, request++);
        }
    }
    void finish(int) override { MPI_Waitall(4, requests_, MPI_STATUSES_IGNORE); }

  private:
    stencil_state &state_;
    face_types types_;
    MPI_Request requests_[4];
};

class typed_persistent : public stencil_exchange {
  public:
    explicit typed_persistent(stencil_state &state) : types_(state.grid) {
        for (int field = 0; field < 2; ++field) {
            double *data = state.fields[size_t(field)].data();
            MPI_Request *request = requests_[field];
            for (stencil_side side : sides) {
                MPI_Recv_init(data, 1, types_.received[int(side)], state.grid.neighbour(side),
                              received_tag(side), state.line, request++);
            }
            for (stencil_side side : sides) {
                MPI_Send_init(data, 1, types_.sent[int(side)], state.grid.neighbour(side),
                              sent_tag(side), state.line, request++);
            }
        }
    }
    ~typed_persistent() override {
        for (auto &of_field : requests_) {
            for (MPI_Request &request : of_field) {
                MPI_Request_free(&request);
            }
        }
    }
    void start(int field) override { MPI_Startall(4, requests_[field]); }
    void finish(int field) override { MPI_Waitall(4, requests_[field], MPI_STATUSES_IGNORE); }

  private:
    face_types types_;
    MPI_Request requests_[2][4];
};

// The call blocks: all is done in finish().
class neighbour_collective : public stencil_exchange {
  public:
    explicit neighbour_collective(stencil_state &state) : state_(state), types_(state.grid) {}

    void start(int) override {}
    void finish(int field) override {
        double *data = state_.fields[size_t(field)].data();
        const int counts[2] = {1, 1};
        const MPI_Aint places[2] = {0, 0};
        MPI_Neighbor_alltoallw(data, counts, places, types_.sent, data, counts, places,
                               types_.received, state_.line);
    }

  private:
    stencil_state &state_;
    face_types types_;
};

class contiguous : public stencil_exchange {
  public:
    contiguous(stencil_state &state, stencil_buffer &faces) : state_(state), faces_(faces) {}

    void start(int) override {
        receive();
        send();
    }
    void finish(int) override { MPI_Waitall(4, requests_, MPI_STATUSES_IGNORE); }

  protected:
    void receive() {
        for (int side = 0; side < 2; ++side) {
            MPI_Irecv(face(2 + side), count(), MPI_DOUBLE, state_.grid.neighbour(sides[side]),
                      received_tag(sides[side]), state_.line, &requests_[side]);
        }
    }
    void send() {
        for (int side = 0; side < 2; ++side) {
            MPI_Isend(face(side), count(), MPI_DOUBLE, state_.grid.neighbour(sides[side]),
                      sent_tag(sides[side]), state_.line, &requests_[2 + side]);
        }
    }
    stencil_state &state_;
    stencil_buffer &faces_;

  private:
    double *face(int number) const {
        return faces_.data() + size_t(number) * state_.grid.face_pitch();
    }
    int count() const { return int(state_.grid.face_elements()); }

    MPI_Request requests_[4];
};

class packed_by_hand : public contiguous {
  public:
    explicit packed_by_hand(stencil_state &state) : contiguous(state, *state.packed) {}

    void start(int field) override {
        state_.work->start_pack(state_.fields[size_t(field)], faces_);
        receive();
    }
    void finish(int field) override {
        state_.work->wait_halo();
        send();
        contiguous::finish(field);
        state_.work->start_unpack(faces_, state_.fields[size_t(field)]);
    }
    void settle() override { state_.work->wait_halo(); }
};

}  // namespace

const std::vector<std::string> &stencil_exchange::names() {
    static const std::vector<std::string> all = {"types", "types-persistent", "neighbor", "hand",
                                                 "contiguous"};
    return all;
}

bool stencil_exchange::is_contiguous(const std::string &name) {
    return name == "hand" || name == "contiguous";
}

std::unique_ptr<stencil_exchange> stencil_exchange::make(const std::string &name,
                                                         stencil_state &state) {
    if (name == "types") {
        return std::make_unique<typed>(state);
    }
    if (name == "types-persistent") {
        return std::make_unique<typed_persistent>(state);
    }
    if (name == "neighbor") {
        return std::make_unique<neighbour_collective>(state);
    }
    if (name == "hand") {
        return std::make_unique<packed_by_hand>(state);
    }
    return std::make_unique<contiguous>(state, *state.plain);
}
