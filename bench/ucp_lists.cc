// Lists of scattered blocks by UCP alone, from rank 0's memory into rank 1's: a message whose two
// sides are lists of buffers (UCP_DATATYPE_IOV, by tag), one put of a list (ucp_dt_make_sgl), and a
// get of each block (UCP has no gets of lists). Beside each stands the same operation with one
// contiguous buffer of as many bytes. Every byte and gap is checked. Without the plugin it measures
// UCX.
//
//   mpirun -np 2 ucp_lists [--memory cuda|sim|host] [--repeats N] [--order ascending|random]
//                          [--operations iov,puts,gets] BLOCKSxBYTES ...
//
// Blocks lie at twice their length. Columns: us for one operation to its end, medians ("iov": half
// a round trip), and GB/s (10^9 bytes) of eight messages under way. "-": this UCX has no
// puts of lists, which come with 1.22.
#include <mpi.h>
#include <ucp/api/ucp.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/peer_window.hpp"
#include "bench/test_memory.hpp"
#include "bench/two_ranks.hpp"
#include "tools/perftest/support/statistics.hpp"

namespace {

constexpr int warm_up = 3;
constexpr size_t under_way = 8;

struct case_of {
    size_t blocks, bytes;
    size_t total() const { return blocks * bytes; }
};

// The blocks of one rank's buffer, in the order in which a list names them.
std::vector<size_t> places(const case_of &what, bool random, unsigned seed) {
    std::vector<size_t> offsets(what.blocks);
    std::iota(offsets.begin(), offsets.end(), size_t(0));
    if (random) {
        std::shuffle(offsets.begin(), offsets.end(), std::mt19937(seed));
    }
    for (size_t &one : offsets) {
        one *= 2 * what.bytes;
    }
    return offsets;
}

// One size of list: memory, lists and operations of this rank.
class lists {
  public:
    lists(const two_ranks &ranks, const case_of &what, bool random)
        : ranks_(ranks),
          what_(what),
          from_(places(what, random, 1)),
          to_(places(what, random, 2)),
          source_(ranks.allocate(ranks.memory, size())),
          target_(ranks.allocate(ranks.memory, size())) {
        fill();
        sent_ = buffers(source(), from_);
        received_ = buffers(target(), to_);
    }

    // Us for a message of lists, or of contiguous memory.
    double message(peer_window &peer, bool listed, int repeats) {
        std::vector<double> times;
        for (int i = 0; i < repeats + warm_up; ++i) {
            const double begin = MPI_Wtime();
            for (int sender = 0; sender < 2; ++sender) {
                peer.finish(ranks_.rank == sender ? send(peer, listed) : receive(peer, listed));
            }
            if (i >= warm_up) {
                times.push_back((MPI_Wtime() - begin) / 2);
            }
        }
        return cuda_nc::tools::median_of(times) * 1e6;
    }
    // GB/s of `repeats` times eight messages to rank 1, all into the same blocks.
    double rate(peer_window &peer, bool listed, int repeats) {
        std::vector<double> times;
        for (int i = 0; i < repeats + warm_up; ++i) {
            peer.meet();
            const double begin = MPI_Wtime();
            std::vector<ucs_status_ptr_t> requests;
            for (size_t n = 0; n < under_way; ++n) {
                requests.push_back(ranks_.rank == 0 ? send(peer, listed) : receive(peer, listed));
            }
            for (ucs_status_ptr_t one : requests) {
                peer.finish(one);
            }
            if (i >= warm_up) {
                times.push_back(MPI_Wtime() - begin);
            }
        }
        const double seconds = cuda_nc::tools::median_of(times);
        double slower = 0;
        MPI_Allreduce(&seconds, &slower, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return static_cast<double>(under_way * what_.total()) / slower / 1e9;
    }
    // Us until the bytes of rank 0 are there, or those of rank 1 are here; negative: no such lists.
    double one_sided(peer_window &peer, bool put, bool listed, int repeats) {
        std::vector<double> times;
        MPI_Barrier(MPI_COMM_WORLD);
        bool there_are = true;
        for (int i = 0; ranks_.rank == 0 && i < repeats + warm_up && there_are; ++i) {
            const double begin = MPI_Wtime();
            if (!listed) {
                peer.finish(put ? ucp_put_nbx(peer.ep, source(), what_.total(), peer.address,
                                              peer.key, &peer.param)
                                : ucp_get_nbx(peer.ep, source(), what_.total(), peer.address,
                                              peer.key, &peer.param));
            } else if (put) {
                there_are = put_list(peer);
            } else {
                get_blocks(peer);
            }
            peer.flush();
            if (i >= warm_up) {
                times.push_back(MPI_Wtime() - begin);
            }
        }
        peer.meet();
        return times.empty() ? -1 : cuda_nc::tools::median_of(times) * 1e6;
    }

    // Bytes of the target that are not what the other rank's source has, gaps included; then all is
    // as it was at first.
    long wrong(bool listed) {
        MPI_Barrier(MPI_COMM_WORLD);
        std::vector<unsigned char> right = image(size(), target_of(ranks_.rank));
        const int other = 1 - ranks_.rank;
        for (size_t block = 0; block < what_.blocks; ++block) {
            for (size_t i = 0; i < what_.bytes; ++i) {
                const size_t at = listed ? to_[block] + i : block * what_.bytes + i;
                right[at] = pattern(listed ? from_[block] + i : at, other);
            }
        }
        return compare(target_->read(), right);
    }
    // The same of the source, into which a get has brought the other rank's target.
    long wrong_of_get(bool listed) {
        std::vector<unsigned char> right = image(size(), ranks_.rank);
        const int other = target_of(1 - ranks_.rank);
        for (size_t block = 0; block < what_.blocks; ++block) {
            for (size_t i = 0; i < what_.bytes; ++i) {
                const size_t at = listed ? from_[block] + i : block * what_.bytes + i;
                right[at] = pattern(listed ? to_[block] + i : at, other);
            }
        }
        return compare(source_->read(), right);
    }
    void *source() const { return source_->address(); }
    void *target() const { return target_->address(); }
    size_t size() const { return 2 * what_.total(); }
    void fill() {
        source_->write(image(size(), ranks_.rank));
        target_->write(image(size(), target_of(ranks_.rank)));
        MPI_Barrier(MPI_COMM_WORLD);
    }

  private:
    std::vector<ucp_dt_iov_t> buffers(void *memory, const std::vector<size_t> &offsets) const {
        std::vector<ucp_dt_iov_t> list;
        for (size_t offset : offsets) {
            list.push_back({static_cast<char *>(memory) + offset, what_.bytes});
        }
        return list;
    }
    long compare(const std::vector<unsigned char> &seen, const std::vector<unsigned char> &right) {
        long number = 0;
        for (size_t i = 0; i < seen.size(); ++i) {
            number += seen[i] != right[i] ? 1 : 0;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        fill();
        return number;
    }
    ucs_status_ptr_t send(peer_window &peer, bool listed) {
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = listed ? ucp_dt_make_iov() : ucp_dt_make_contig(1);
        return listed ? ucp_tag_send_nbx(peer.ep, sent_.data(), sent_.size(), 1, &param)
                      : ucp_tag_send_nbx(peer.ep, source(), what_.total(), 1, &param);
    }
    ucs_status_ptr_t receive(peer_window &peer, bool listed) {
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = listed ? ucp_dt_make_iov() : ucp_dt_make_contig(1);
        return listed ? ucp_tag_recv_nbx(peer.worker, received_.data(), received_.size(), 1, ~0ul,
                                         &param)
                      : ucp_tag_recv_nbx(peer.worker, target(), what_.total(), 1, ~0ul, &param);
    }
    void get_blocks(peer_window &peer) {
        std::vector<ucs_status_ptr_t> requests;
        for (size_t i = 0; i < what_.blocks; ++i) {
            const ucs_status_ptr_t one = ucp_get_nbx(peer.ep, sent_[i].buffer, what_.bytes,
                                                     peer.address + to_[i], peer.key, &peer.param);
            if (UCS_PTR_IS_PTR(one)) {
                requests.push_back(one);
            } else {
                peer.finish(one);
            }
        }
        for (ucs_status_ptr_t one : requests) {
            peer.finish(one);
        }
    }
    // False: this UCX has no puts of lists.
    bool put_list([[maybe_unused]] peer_window &peer) {
#if UCP_API_VERSION >= UCP_VERSION(1, 22)
        addresses_.clear();
        for (size_t offset : to_) {
            addresses_.push_back(peer.address + offset);
        }
        here_.clear();
        for (const ucp_dt_iov_t &one : sent_) {
            here_.push_back(one.buffer);
        }
        lengths_.assign(what_.blocks, what_.bytes);
        handles_.assign(what_.blocks, peer.source);
        keys_.assign(what_.blocks, peer.key);
        ucp_dt_local_sgl_t local = {};
        local.field_mask = UCP_DT_LOCAL_SGL_FIELD_BUFFERS | UCP_DT_LOCAL_SGL_FIELD_LENGTHS |
                           UCP_DT_LOCAL_SGL_FIELD_MEMHS;
        local.buffers = here_.data();
        local.lengths = lengths_.data();
        local.memhs = handles_.data();
        ucp_dt_remote_sgl_t remote = {};
        remote.field_mask = UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS | UCP_DT_REMOTE_SGL_FIELD_LENGTHS |
                            UCP_DT_REMOTE_SGL_FIELD_RKEYS;
        remote.remote_addrs = addresses_.data();
        remote.lengths = lengths_.data();
        remote.rkeys = keys_.data();
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REMOTE_DATATYPE |
                             UCP_OP_ATTR_FIELD_REMOTE | UCP_OP_ATTR_FIELD_REMOTE_COUNT;
        param.datatype = ucp_dt_make_sgl();
        param.remote_datatype = ucp_dt_make_sgl();
        param.remote = &remote;
        param.remote_count = what_.blocks;
        peer.finish(ucp_put_nbx(peer.ep, &local, what_.blocks, UCP_REMOTE_ADDR_INVALID,
                                UCP_RKEY_INVALID, &param));
        return true;
#else
        return false;
#endif
    }

    const two_ranks &ranks_;
    case_of what_;
    std::vector<size_t> from_, to_;
    std::unique_ptr<test_memory> source_, target_;
    std::vector<ucp_dt_iov_t> sent_, received_;
    std::vector<uint64_t> addresses_;
    std::vector<void *> here_;
    std::vector<size_t> lengths_;
    std::vector<ucp_mem_h> handles_;
    std::vector<ucp_rkey_h> keys_;
};

void row(const two_ranks &ranks, const case_of &what, const char *name, double listed,
         double contiguous, long wrong) {
    long all = 0;
    MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (ranks.rank != 0) {
        return;
    }
    if (listed < 0) {
        std::printf("%9zu %9zu  %-10s %11s %11.1f %7s %6ld\n", what.blocks, what.bytes, name, "-",
                    contiguous, "-", all);
    } else {
        std::printf("%9zu %9zu  %-10s %11.1f %11.1f %7.2f %6ld\n", what.blocks, what.bytes, name,
                    listed, contiguous, listed / contiguous, all);
    }
    std::fflush(stdout);
}

struct options {
    int repeats = 50;
    bool random = true;
    std::string operations = "iov,puts,gets";
    bool has(const char *name) const { return operations.find(name) != std::string::npos; }
};

// How many bytes this rank found wrong.
long run(const two_ranks &ranks, const options &chosen, const case_of &what) {
    lists mine(ranks, what, chosen.random);
    long all = 0;
    const auto count = [&all](long wrong) {
        all += wrong;
        return wrong;
    };
    if (chosen.has("iov")) {
        peer_window peer(ranks.rank, mine.source(), mine.target(), mine.size(), UCP_FEATURE_TAG);
        double listed = mine.message(peer, true, chosen.repeats);
        long wrong = mine.wrong(true);
        double contiguous = mine.message(peer, false, chosen.repeats);
        row(ranks, what, "iov", listed, contiguous, count(wrong + mine.wrong(false)));
        listed = mine.rate(peer, true, chosen.repeats / 8 + 1);
        wrong = mine.wrong(true) * ranks.rank;  // rank 0 has received nothing
        contiguous = mine.rate(peer, false, chosen.repeats / 8 + 1);
        wrong += mine.wrong(false) * ranks.rank;
        row(ranks, what, "iov, GB/s", listed, contiguous, count(wrong));
    }
    for (const bool put : {true, false}) {
        if (!chosen.has(put ? "puts" : "gets")) {
            continue;
        }
        peer_window peer(ranks.rank, mine.source(), mine.target(), mine.size(), UCP_FEATURE_RMA);
        double us[2];
        long wrong = 0;
        for (const bool listed : {true, false}) {
            us[listed] = mine.one_sided(peer, put, listed, chosen.repeats);
            MPI_Bcast(&us[listed], 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            // Rank 1 looks at what was put, rank 0 at what it got; the other one's is as at first.
            const bool looks = ranks.rank == (put ? 1 : 0) && us[listed] >= 0;
            const long here = put ? mine.wrong(listed) : mine.wrong_of_get(listed);
            wrong += looks ? here : 0;
        }
        row(ranks, what, put ? "put" : "gets", us[1], us[0], count(wrong));
    }
    return all;
}

}  // namespace

int main(int argc, char **argv) {
    CLI::App app("Lists of scattered blocks by UCP: mpirun -np 2 ucp_lists", "ucp_lists");
    two_ranks ranks;
    options chosen;
    std::string order = "random";
    std::vector<std::string> names = {"64x65536",   "256x65536",  "1024x4096",
                                      "4096x65536", "12288x8192", "65536x4096"};
    ranks.add_options(&app);
    app.add_option("--repeats", chosen.repeats, "Operations of each kind")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--order", order, "Of the blocks")
        ->check(CLI::IsMember({"ascending", "random"}))
        ->capture_default_str();
    app.add_option("--operations", chosen.operations, "Some of iov, puts, gets")
        ->capture_default_str();
    app.add_option("lists", names, "BLOCKSxBYTES of each list")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    chosen.random = order == "random";
    ranks.start(&argc, &argv);
    if (ranks.rank == 0) {
        std::printf("#  blocks     bytes  operation          list  contiguous   ratio  wrong\n");
    }
    long wrong = 0;
    for (const std::string &name : names) {
        case_of what = {};
        if (std::sscanf(name.c_str(), "%zux%zu", &what.blocks, &what.bytes) != 2 ||
            what.total() == 0) {
            std::fprintf(stderr, "ucp_lists: %s is no BLOCKSxBYTES\n", name.c_str());
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        wrong += run(ranks, chosen, what);
    }
    return ranks.finish(wrong);
}
