#include "capi/layout_tables.hpp"

#include <algorithm>
#include <map>

#include "ucs/base/log.hpp"

namespace cuda_nc::capi {

// Tables of a layout that has ended.
struct retired_tables {
    worklist::work_list_ref list;
    std::vector<layout_tables::stream_mark> marks;

    // Where a mark cannot be asked, its GPU is lost.
    bool is_unused() const noexcept {
        return std::none_of(marks.begin(), marks.end(),
                            [](const auto &one) { return one.reached->query() == UCS_INPROGRESS; });
    }
};

namespace {

struct all_retired {
    std::mutex mutex;
    std::vector<retired_tables> waiting;
    std::vector<worklist::work_list_ref> lost;  // in use, and nothing tells for how long
};

all_retired &get_retired() {
    static auto *only = new all_retired;  // a graph may end while the process exits
    return *only;
}

// May be called where no GPU may be: by the end of a graph.
void retire(retired_tables &&one) noexcept {
    all_retired &all = get_retired();
    std::lock_guard<std::mutex> guard(all.mutex);
    try {
        all.waiting.push_back(std::move(one));
    } catch (const std::bad_alloc &) {
        new (std::nothrow) retired_tables(std::move(one));  // never freed
    }
}

void lose(worklist::work_list_ref list) noexcept {
    all_retired &all = get_retired();
    std::lock_guard<std::mutex> guard(all.mutex);
    try {
        all.lost.push_back(std::move(list));
    } catch (const std::bad_alloc &) {
        new (std::nothrow) worklist::work_list_ref(std::move(list));
    }
}

// What a graph keeps.
struct kept_by_graph {
    worklist::work_list_ref list;
    explicit kept_by_graph(worklist::work_list_ref its_list) noexcept : list(std::move(its_list)) {}
    ~kept_by_graph() { retire({std::move(list), {}}); }
};

// A stream of our own on each GPU, for uploads.
struct upload_lane {
    std::mutex mutex;
    std::unique_ptr<gpu::stream> stream;
    std::unique_ptr<gpu::event> done;

    ucs_status_t open(gpu::device &where) noexcept {
        ucs_status_t status = UCS_OK;
        if (stream == nullptr) {
            status = where.create_stream(&stream);
        }
        if (status == UCS_OK && done == nullptr) {
            status = where.create_event(&done);
        }
        return status;
    }
};

upload_lane &lane_of(const gpu::device &where) {
    static std::mutex mutex;
    static auto *all = new std::map<const gpu::device *, upload_lane>;
    std::lock_guard<std::mutex> guard(mutex);
    return (*all)[&where];
}

// Drops marks that were reached, of streams that may be gone.
template <typename Marks>
void forget_reached(Marks &marks) noexcept {
    constexpr size_t many = 8;
    if (marks.size() >= many) {
        marks.erase(std::remove_if(marks.begin(), marks.end(),
                                   [](const auto &one) {
                                       return one.reached.use_count() == 1 &&
                                              one.reached->query() != UCS_INPROGRESS;
                                   }),
                    marks.end());
    }
}

}  // namespace

void table_use::launched(gpu::stream &on) noexcept {
    if (mark_ != nullptr && on.record(*mark_) != UCS_OK) {
        nc_error("a GPU does not tell when a layout's tables are free: they are kept");
        lose(list_);
    }
}

layout_tables::~layout_tables() {
    for (on_device &one : all_) {
        retire({std::move(one.list), std::move(one.marks)});
    }
    if (!all_.empty()) {
        give_back_unused();
    }
}

layout_tables::on_device *layout_tables::find(const gpu::device &where) noexcept {
    const auto found = std::find_if(all_.begin(), all_.end(),
                                    [&](const on_device &one) { return one.where == &where; });
    return found != all_.end() ? &*found : nullptr;
}

const layout_view *layout_tables::view_on(const gpu::device &where) noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    const on_device *found = find(where);
    return found != nullptr ? &found->list->view() : nullptr;
}

ucs_status_t layout_tables::prepare(gpu::device &where, const layout_ref &what) {
    give_back_unused();
    if (view_on(where) != nullptr) {
        return UCS_OK;
    }
    upload_lane &lane = lane_of(where);
    std::lock_guard<std::mutex> one_at_a_time(lane.mutex);
    if (view_on(where) != nullptr) {
        return UCS_OK;
    }
    worklist::work_list_ref list;
    ucs_status_t status = worklist::acquire(where, what, &list);
    if (status == UCS_OK) {
        status = lane.open(where);
    }
    if (status != UCS_OK) {
        return status;
    }
    status = list->prepare(*lane.stream, what->packed_size());
    ucs_status_t ended = lane.stream->record(*lane.done);
    if (ended == UCS_OK) {
        ended = lane.done->synchronize();
    }
    if (status != UCS_OK || ended != UCS_OK) {
        lane.stream.reset();  // a stream keeps its first error
        return status != UCS_OK ? status : ended;
    }
    std::lock_guard<std::mutex> guard(mutex_);
    all_.push_back({&where, std::move(list), {}});
    return UCS_OK;
}

ucs_status_t layout_tables::begin_use(gpu::device &where, gpu::borrowed_stream &on,
                                      table_use *use_p) {
    std::lock_guard<std::mutex> guard(mutex_);
    on_device &tables = *find(where);
    if (on.is_capturing()) {
        return on.keep(std::make_shared<kept_by_graph>(tables.list));
    }
    use_p->list_ = tables.list;
    const uint64_t id = on.id();
    const auto known = std::find_if(tables.marks.begin(), tables.marks.end(),
                                    [&](const stream_mark &one) { return one.stream == id; });
    if (known != tables.marks.end()) {
        use_p->mark_ = known->reached;
        return UCS_OK;
    }
    forget_reached(tables.marks);
    std::unique_ptr<gpu::event> made;
    const ucs_status_t status = where.create_event(&made);
    if (status == UCS_OK) {
        use_p->mark_ = std::move(made);
        tables.marks.push_back({id, use_p->mark_});
    }
    return status;
}

void give_back_unused() noexcept {
    std::vector<retired_tables> unused;  // freed without the lock
    all_retired &all = get_retired();
    std::lock_guard<std::mutex> guard(all.mutex);
    const auto first = std::partition(all.waiting.begin(), all.waiting.end(),
                                      [](const retired_tables &one) { return !one.is_unused(); });
    try {
        unused.assign(std::make_move_iterator(first), std::make_move_iterator(all.waiting.end()));
        all.waiting.erase(first, all.waiting.end());
    } catch (const std::bad_alloc &) {
        // Another time.
    }
}

size_t count_unreturned() noexcept {
    all_retired &all = get_retired();
    std::lock_guard<std::mutex> guard(all.mutex);
    return all.waiting.size();
}

}  // namespace cuda_nc::capi
