// Objects that are acquired and released once for each message. Each thread keeps some of them, so
// that neither call needs a lock; what a thread has too many of moves to a list that all share.
#pragma once

#include <mutex>
#include <new>

namespace cuda_nc::dt {

// `object` has a member `object *next_free`, is default constructible, and is reused as it is.
template <typename object>
class free_list {
  public:
    // Null: no memory.
    static object *acquire() noexcept {
        thread_list &mine = of_thread();
        if (mine.head == nullptr) {
            refill(mine);
        }
        object *one = mine.head;
        if (one == nullptr) {
            return new (std::nothrow) object;
        }
        mine.head = one->next_free;
        --mine.count;
        return one;
    }

    static void release(object *one) noexcept {
        thread_list &mine = of_thread();
        if (mine.count >= mine.room) {
            return release_slow(mine, one);
        }
        one->next_free = mine.head;
        mine.head = one;
        ++mine.count;
    }

    // Frees what the calling thread and the shared list hold.
    static void release_unused() noexcept {
        spill(list_, 0);
        shared_list &all = shared();
        std::unique_lock<std::mutex> guard(all.mutex, std::try_to_lock);
        while (object *one = guard.owns_lock() ? all.head : nullptr) {
            all.head = one->next_free;
            delete one;
        }
    }

  private:
    static constexpr unsigned keep = 64;  // objects a thread

    struct thread_list {
        object *head = nullptr;
        unsigned count = 0;
        unsigned room = 0;  // objects; 0 before watch_end(), and after the thread's end
        bool ended = false;
    };
    struct shared_list {
        std::mutex mutex;
        object *head = nullptr;
    };
    struct thread_end {
        ~thread_end() {
            list_.room = 0;
            list_.ended = true;
            spill(list_, 0);
        }
        void watch() {}
    };

    // Looked up by one call. Without the barrier the compiler looks it up again at each use.
    static thread_list &of_thread() noexcept {
        thread_list *mine = &list_;
        __asm__("" : "+r"(mine));
        return *mine;
    }

    static shared_list &shared() noexcept {
        static auto *only = new shared_list;  // outlives every thread
        return *only;
    }

    static void watch_end(thread_list &mine) noexcept {
        static thread_local thread_end end;
        end.watch();
        mine.room = keep;
    }

    static void release_slow(thread_list &mine, object *one) noexcept {
        if (mine.ended) {
            delete one;
            return;
        }
        watch_end(mine);
        if (mine.count >= keep) {
            spill(mine, keep / 2);
        }
        one->next_free = mine.head;
        mine.head = one;
        ++mine.count;
    }

    // Moves all but `kept` objects to the shared list. Frees them where that is locked, as it may
    // be for ever in a child that was forked meanwhile.
    static void spill(thread_list &mine, unsigned kept) noexcept {
        if (mine.count <= kept) {
            return;
        }
        shared_list &all = shared();
        std::unique_lock<std::mutex> guard(all.mutex, std::try_to_lock);
        while (mine.count > kept) {
            object *one = mine.head;
            mine.head = one->next_free;
            --mine.count;
            if (guard.owns_lock()) {
                one->next_free = all.head;
                all.head = one;
            } else {
                delete one;
            }
        }
    }

    static void refill(thread_list &mine) noexcept {
        if (mine.ended) {
            return;
        }
        shared_list &all = shared();
        std::unique_lock<std::mutex> guard(all.mutex, std::try_to_lock);
        while (guard.owns_lock() && all.head != nullptr && mine.count < keep / 2) {
            object *one = all.head;
            all.head = one->next_free;
            one->next_free = mine.head;
            mine.head = one;
            ++mine.count;
        }
        if (mine.count != 0) {
            watch_end(mine);  // this thread may never release
        }
    }

    static thread_local thread_list list_;
};

template <typename object>
thread_local typename free_list<object>::thread_list free_list<object>::list_;

}  // namespace cuda_nc::dt
