#include "made_type.hpp"

#include <stdexcept>

namespace mpi_test {

made_type finish_type(MPI_Datatype handle, type_map map, std::string text, bounds_are bounds) {
    made_type result(handle, std::move(map), std::move(text));
    result.owned_ = true;
    result.adopt_bounds(bounds);
    return result;
}

namespace {

std::string list(const std::vector<placement> &blocks) {
    std::string text;
    for (const placement &block : blocks) {
        text += (text.empty() ? "" : " ") + std::to_string(block.count) + "@" +
                std::to_string(block.displacement);
    }
    return "[" + text + "]";
}

std::string list(const std::vector<int64_t> &numbers) {
    std::string text;
    for (int64_t number : numbers) {
        text += (text.empty() ? "" : " ") + std::to_string(number);
    }
    return "[" + text + "]";
}

type_map place(const std::vector<placement> &blocks, int64_t unit, const type_map &old) {
    type_map map;
    for (const placement &block : blocks) {
        map.add_many(old, block.count, block.displacement * unit);
    }
    return map;
}

std::vector<int> counts_of(const std::vector<placement> &blocks) {
    std::vector<int> counts;
    for (const placement &block : blocks) {
        counts.push_back(block.count);
    }
    return counts;
}

}  // namespace

made_type contiguous(int count, const made_type &old) {
    MPI_Datatype handle;
    MPI_Type_contiguous(count, old.handle(), &handle);
    return finish_type(handle, repeated(old.map(), count),
                       "contiguous(" + std::to_string(count) + "," + old.text() + ")", regular);
}

made_type hvector(int count, int length, int64_t stride, const made_type &old) {
    MPI_Datatype handle;
    MPI_Type_create_hvector(count, length, stride, old.handle(), &handle);
    type_map map;
    for (int i = 0; i < count; ++i) {
        map.add_many(old.map(), length, i * stride);
    }
    return finish_type(handle, std::move(map),
                       "hvector(" + std::to_string(count) + "," + std::to_string(length) + "," +
                           std::to_string(stride) + "," + old.text() + ")",
                       regular);
}

made_type vector(int count, int length, int stride, const made_type &old) {
    MPI_Datatype handle;
    MPI_Type_vector(count, length, stride, old.handle(), &handle);
    type_map map;
    for (int i = 0; i < count; ++i) {
        map.add_many(old.map(), length, i * stride * old.map().extent());
    }
    return finish_type(handle, std::move(map),
                       "vector(" + std::to_string(count) + "," + std::to_string(length) + "," +
                           std::to_string(stride) + "," + old.text() + ")",
                       regular);
}

made_type indexed(const std::vector<placement> &blocks, const made_type &old) {
    std::vector<int> counts = counts_of(blocks);
    std::vector<int> displacements;
    for (const placement &block : blocks) {
        displacements.push_back(static_cast<int>(block.displacement));
    }
    MPI_Datatype handle;
    MPI_Type_indexed(static_cast<int>(blocks.size()), counts.data(), displacements.data(),
                     old.handle(), &handle);
    return finish_type(handle, place(blocks, old.map().extent(), old.map()),
                       "indexed(" + list(blocks) + "," + old.text() + ")", known);
}

made_type hindexed(const std::vector<placement> &blocks, const made_type &old) {
    std::vector<int> counts = counts_of(blocks);
    std::vector<MPI_Aint> displacements;
    for (const placement &block : blocks) {
        displacements.push_back(block.displacement);
    }
    MPI_Datatype handle;
    MPI_Type_create_hindexed(static_cast<int>(blocks.size()), counts.data(), displacements.data(),
                             old.handle(), &handle);
    return finish_type(handle, place(blocks, 1, old.map()),
                       "hindexed(" + list(blocks) + "," + old.text() + ")", known);
}

made_type indexed_block(int length, const std::vector<int64_t> &displacements,
                        const made_type &old) {
    std::vector<int> narrow(displacements.begin(), displacements.end());
    MPI_Datatype handle;
    MPI_Type_create_indexed_block(static_cast<int>(narrow.size()), length, narrow.data(),
                                  old.handle(), &handle);
    type_map map;
    for (int64_t displacement : displacements) {
        map.add_many(old.map(), length, displacement * old.map().extent());
    }
    return finish_type(handle, std::move(map),
                       "indexed_block(" + std::to_string(length) + "," + list(displacements) + "," +
                           old.text() + ")",
                       known);
}

made_type hindexed_block(int length, const std::vector<int64_t> &displacements,
                         const made_type &old) {
    std::vector<MPI_Aint> wide(displacements.begin(), displacements.end());
    MPI_Datatype handle;
    MPI_Type_create_hindexed_block(static_cast<int>(wide.size()), length, wide.data(), old.handle(),
                                   &handle);
    type_map map;
    for (int64_t displacement : displacements) {
        map.add_many(old.map(), length, displacement);
    }
    return finish_type(handle, std::move(map),
                       "hindexed_block(" + std::to_string(length) + "," + list(displacements) +
                           "," + old.text() + ")",
                       known);
}

made_type structure(const std::vector<struct_member> &members) {
    std::vector<int> counts;
    std::vector<MPI_Aint> displacements;
    std::vector<MPI_Datatype> types;
    type_map map;
    std::string text;
    for (const struct_member &member : members) {
        counts.push_back(member.place.count);
        displacements.push_back(member.place.displacement);
        types.push_back(member.type->handle());
        map.add_many(member.type->map(), member.place.count, member.place.displacement);
        text += (text.empty() ? "" : " ") + std::to_string(member.place.count) + "@" +
                std::to_string(member.place.displacement) + ":" + member.type->text();
    }
    MPI_Datatype handle;
    MPI_Type_create_struct(static_cast<int>(members.size()), counts.data(), displacements.data(),
                           types.data(), &handle);
    return finish_type(handle, std::move(map), "struct(" + text + ")", open);
}

made_type resized(int64_t lb, int64_t extent, const made_type &old) {
    MPI_Datatype handle;
    MPI_Type_create_resized(old.handle(), lb, extent, &handle);
    type_map map = old.map();
    map.resize(lb, extent);
    return finish_type(
        handle, std::move(map),
        "resized(" + std::to_string(lb) + "," + std::to_string(extent) + "," + old.text() + ")",
        known);
}

made_type duplicate(const made_type &old) {
    MPI_Datatype handle;
    MPI_Type_dup(old.handle(), &handle);
    return finish_type(handle, old.map(), "dup(" + old.text() + ")", known);
}

}  // namespace mpi_test
