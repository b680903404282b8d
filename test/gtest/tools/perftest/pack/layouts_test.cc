#include "tools/perftest/pack/layouts.hpp"

#include <gtest/gtest.h>

#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

std::vector<std::string> texts_of(const layout_choice &from,
                                  std::vector<std::string> *notes_p = nullptr) {
    std::vector<std::string> texts, notes;
    for (const named_layout &one : choose_layouts(from, notes_p != nullptr ? notes_p : &notes)) {
        texts.push_back(one.text);
    }
    return texts;
}

using texts = std::vector<std::string>;

TEST(pack_layouts, families_have_a_member_for_each_size) {
    layout_choice from;
    from.layouts = {"vector:*,8,16", "vector-64"};
    from.sizes = "64,1K";
    EXPECT_EQ(texts_of(from),
              (texts{"vector:8,8,16", "vector:1,64,128", "vector:128,8,16", "vector:16,64,128"}));
    std::vector<std::string> notes;
    EXPECT_EQ(choose_layouts(from, &notes).front().name, "vector:*,8,16");
}

TEST(pack_layouts, layouts_of_one_size_are_there_once) {
    layout_choice from;
    from.layouts = {"vector:4,8,16"};
    EXPECT_EQ(texts_of(from), texts{"vector:4,8,16"});
    from.layouts = {"vector:4,8,16", "vector:*,8,16"};
    from.sizes = "8:16";
    EXPECT_EQ(texts_of(from), (texts{"vector:4,8,16", "vector:1,8,16", "vector:2,8,16"}));
}

TEST(pack_layouts, sizes_without_a_member_are_told) {
    layout_choice from;
    from.layouts = {"vector:*,64,128"};
    from.sizes = "8,64";
    std::vector<std::string> notes;
    EXPECT_EQ(texts_of(from, &notes), texts{"vector:1,64,128"});
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find("8 bytes"), std::string::npos) << notes[0];
    from.sizes = "8";
    EXPECT_THROW(texts_of(from), run_error);
}

TEST(pack_layouts, bars_and_misalignment_of_the_catalogue_hold) {
    layout_choice from;
    from.layouts = {"vector-12B-off-1"};
    from.misalign = 2;
    std::vector<std::string> notes;
    const named_layout one = choose_layouts(from, &notes).front();
    EXPECT_EQ(one.misalign, 3u);
    EXPECT_EQ(one.at_most.pack, 1.7);
}

TEST(pack_layouts, wrong_choices_are_refused) {
    layout_choice none, family, text, set, sizes;
    family.layouts = {"vector-8"};
    text.layouts = {"vector:1"};
    set.set = "bogus";
    sizes.layouts = {"vector-8"};
    sizes.sizes = "64:8";
    for (const layout_choice &one : {none, family, text, set, sizes}) {
        EXPECT_THROW(texts_of(one), run_error);
    }
}

}  // namespace
}  // namespace cuda_nc::tools
