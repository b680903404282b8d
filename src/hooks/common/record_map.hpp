// Type records by what names the datatype.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "hooks/common/type_record.hpp"

namespace cuda_nc::hooks {

// Thread safe. Its lock is never held while MPI or UCX is called, or while a record is destroyed.
template <typename key>
class record_map {
  public:
    // False: `of` is not in the map. *record_p is null where a null record was added, and lives
    // until the record is removed.
    bool find(key of, const type_record **record_p) noexcept {
        std::lock_guard<std::mutex> guard(mutex_);
        auto found = records_.find(of);
        if (found == records_.end()) {
            return false;
        }
        *record_p = found->second.get();
        return true;
    }

    // Keeps `record`, which may be null, unless `of` has one; returns the one that is kept. Throws
    // std::bad_alloc, with `record` unchanged.
    const type_record *add(key of, std::unique_ptr<type_record> &record) {
        std::lock_guard<std::mutex> guard(mutex_);
        auto [place, is_new] = records_.try_emplace(of);
        if (is_new) {
            place->second = std::move(record);
        }
        return place->second.get();
    }

    // Keeps `record`, which becomes the one that `of` had, or null. Throws std::bad_alloc, with
    // `record` unchanged.
    void set(key of, std::unique_ptr<type_record> &record) {
        std::lock_guard<std::mutex> guard(mutex_);
        records_[of].swap(record);
    }

    // Null where there is none.
    std::unique_ptr<type_record> remove(key of) noexcept {
        std::lock_guard<std::mutex> guard(mutex_);
        auto found = records_.find(of);
        if (found == records_.end()) {
            return nullptr;
        }
        std::unique_ptr<type_record> record = std::move(found->second);
        records_.erase(found);
        return record;
    }

  private:
    std::mutex mutex_;
    std::unordered_map<key, std::unique_ptr<type_record>> records_;
};

}  // namespace cuda_nc::hooks
