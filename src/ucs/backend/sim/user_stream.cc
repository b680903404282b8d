#include "ucs/backend/sim/user_stream.hpp"

#include <map>
#include <mutex>

namespace cuda_nc::gpu::sim {
namespace {

// Streams that are alive, by address: an application may pass anything.
struct live_streams {
    std::mutex mutex;
    std::map<const void *, std::weak_ptr<user_stream>> all;
};

live_streams &get_live() {
    static auto *only = new live_streams;  // used during exit
    return *only;
}

std::atomic<uint64_t> last_id{0};

class borrowed final : public borrowed_stream {
  public:
    explicit borrowed(std::shared_ptr<user_stream> of) noexcept : of_(std::move(of)) {}

    ucs_status_t launch(const transfer &work) noexcept override {
        return of_->stream().launch(work);
    }
    ucs_status_t launch(const pipe_work *sides, size_t number,
                        size_t *launched_p) noexcept override {
        return of_->stream().launch(sides, number, launched_p);
    }
    ucs_status_t launch(const pair_list &list) noexcept override {
        return of_->stream().launch(list);
    }
    ucs_status_t copy(void *destination, const void *source, size_t length) noexcept override {
        return of_->stream().copy(destination, source, length);
    }
    ucs_status_t record(event &mark) noexcept override { return of_->stream().record(mark); }
    ucs_status_t wait(event &mark) noexcept override { return of_->stream().wait(mark); }

    uint64_t id() const noexcept override { return of_->id(); }
    bool is_capturing() const noexcept override { return of_->stream().capture() != nullptr; }
    ucs_status_t keep(std::shared_ptr<void> what) noexcept override try {
        of_->stream().capture()->keep(std::move(what));
        return UCS_OK;
    } catch (const std::bad_alloc &) {
        return UCS_ERR_NO_MEMORY;
    }

  private:
    const std::shared_ptr<user_stream> of_;
};

}  // namespace

user_stream::user_stream(environment &all, int ordinal)
    : ordinal_(ordinal),
      id_(last_id.fetch_add(1, std::memory_order_relaxed) + 1),
      stream_(all, ordinal) {}

user_stream::~user_stream() {
    live_streams &live = get_live();
    std::lock_guard<std::mutex> guard(live.mutex);
    live.all.erase(this);
}

std::shared_ptr<user_stream> user_stream::make(environment &all, int ordinal) {
    std::shared_ptr<user_stream> made(new user_stream(all, ordinal));
    live_streams &live = get_live();
    std::lock_guard<std::mutex> guard(live.mutex);
    live.all[made.get()] = made;
    return made;
}

ucs_status_t user_stream::synchronize() noexcept try {
    sim_event mark;
    const ucs_status_t status = stream_.record(mark);
    return status != UCS_OK ? status : mark.synchronize();
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

std::shared_ptr<user_stream> find_user_stream(const void *address) noexcept {
    live_streams &live = get_live();
    std::lock_guard<std::mutex> guard(live.mutex);
    const auto found = live.all.find(address);
    return found != live.all.end() ? found->second.lock() : nullptr;
}

ucs_status_t borrow(user_stream *wanted, int ordinal, std::unique_ptr<borrowed_stream> *stream_p) {
    std::shared_ptr<user_stream> found = find_user_stream(wanted);
    if (found == nullptr || found->ordinal() != ordinal) {
        return UCS_ERR_INVALID_PARAM;
    }
    *stream_p = std::make_unique<borrowed>(std::move(found));
    return UCS_OK;
}

}  // namespace cuda_nc::gpu::sim
