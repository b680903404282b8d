#include "tools/perftest/layouts/sizes.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/core.h>

#include "tools/perftest/support/run_error.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/text.hpp"
#include "ucs/layout/layout_spec.hpp"

namespace cuda_nc::tools {
namespace {

constexpr uint64_t largest_n = uint64_t(1) << 40;

uint64_t one_size(const std::string &text) {
    size_t size;
    if (text == "inf" || !parse_size(text, &size) || size == 0) {
        throw run_error(fmt::format("\"{}\" is not a size such as 8, 64K or 1M", text));
    }
    return size;
}

// Packed bytes of a family's members; 0 where there is no such member.
class family_sizes {
  public:
    explicit family_sizes(const std::string &family) : family_(family) {}

    uint64_t operator()(uint64_t n) {
        layout_ref what = parse_layout(member_text(family_, n), &error_);
        return what != nullptr ? what->packed_size() : 0;
    }
    const std::string &error() const { return error_; }

  private:
    const std::string &family_;
    std::string error_;
};

// Where the sizes grow as a power of n: an n near the wanted size.
uint64_t guess(family_sizes &size_of, uint64_t from, uint64_t bytes) {
    const double first = static_cast<double>(size_of(from)),
                 second = static_cast<double>(size_of(2 * from));
    if (first == 0 || second <= first) {
        return from;
    }
    const double power = std::log2(second / first);
    const double n =
        static_cast<double>(from) * std::pow(static_cast<double>(bytes) / first, 1 / power);
    return static_cast<uint64_t>(std::clamp(n * (1 + 1e-9), 1.0, static_cast<double>(largest_n)));
}

}  // namespace

std::vector<uint64_t> parse_sizes(const std::string &text) {
    std::vector<uint64_t> sizes;
    for (const std::string &part : split(text, ',')) {
        const std::vector<std::string> ends = split(part, ':');
        const uint64_t first = one_size(ends[0]), last = one_size(ends.size() > 1 ? ends[1] : part);
        const uint64_t factor = ends.size() > 2 ? one_size(ends[2]) : 2;
        if (ends.size() > 3 || factor < 2 || first > last) {
            throw run_error(fmt::format("\"{}\" is not a range such as 8:64M or 8:64M:4", part));
        }
        for (uint64_t size = first;; size *= factor) {
            sizes.push_back(size);
            if (size > last / factor) {
                break;
            }
        }
    }
    return sizes;
}

bool is_family(const std::string &layout_text) noexcept {
    return layout_text.find('*') != std::string::npos;
}

std::string member_text(const std::string &family, uint64_t n) {
    std::string text;
    for (char one : family) {
        if (one != '*') {
            text += one;
            continue;
        }
        size_t digits = text.size();
        while (digits > 0 && std::isdigit(static_cast<unsigned char>(text[digits - 1])) != 0) {
            --digits;
        }
        const std::string factor = text.substr(digits);
        if (factor.size() > 9) {
            throw run_error(fmt::format("{} is too large a factor of *", factor));
        }
        text.resize(digits);
        text += std::to_string(factor.empty() ? n : std::stoull(factor) * n);
    }
    return text;
}

std::optional<fitted_layout> fit_layout(const std::string &text, uint64_t bytes) {
    family_sizes size_of(text);
    if (!is_family(text)) {
        const uint64_t size = size_of(1);
        if (size == 0) {
            throw run_error(fmt::format("layout {}: {}", text,
                                        size_of.error().empty() ? "it is empty" : size_of.error()));
        }
        return fitted_layout{text, size};
    }
    uint64_t least = 1;
    while (size_of(least) == 0) {
        if (++least > 64) {
            throw run_error(fmt::format("layout {}: {}", text,
                                        size_of.error().empty() ? "it is empty" : size_of.error()));
        }
    }
    if (size_of(least) > bytes) {
        return std::nullopt;
    }
    // `low` is small enough, `high` is not; sizes that cannot be made count as too large.
    auto fits = [&](uint64_t n) {
        const uint64_t size = size_of(n);
        return size != 0 && size <= bytes;
    };
    uint64_t low = least,
             high = std::max(guess(size_of, std::max(least, uint64_t(32)), bytes), low);
    uint64_t step = 1;
    if (fits(high)) {
        do {
            low = high;
            high += step;
            step *= 2;
        } while (high < largest_n && fits(high));
    } else {
        while (high > least + step && !fits(high - step)) {
            high -= step;
            step *= 2;
        }
        low = high > least + step ? high - step : least;
    }
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return fitted_layout{member_text(text, low), size_of(low)};
}

}  // namespace cuda_nc::tools
