// The text form of a layout, for tools and tests.
//
// clang-format off
//     vector:COUNT,BLOCK,STRIDE           COUNT blocks of BLOCK bytes, STRIDE bytes apart
//     subarray:ELEM,SIZES,SUBSIZES,STARTS C order; sizes joined by 'x':
//                                         subarray:8,100x200,10x20,0x5
//     indexed:COUNT,MIN,MAX,ALIGN,SEED    COUNT blocks of MIN..MAX bytes at random, in random order
//     triangle:N,ELEM                     lower triangle of an N x N matrix of ELEM-byte elements
//     transpose:N,ELEM                    an N x N matrix read by columns
//     struct:EXTENT,COUNT,D:L,D:L,...     blocks (displacement:length) repeated COUNT times
//     nest:BLOCK,COUNT,STRIDE,...         BLOCK bytes repeated COUNT times STRIDE bytes apart, that
//                                         again, and so on: the first pair varies fastest
//     parts:D=LAYOUT;D=LAYOUT;...         layouts after each other, each moved by D bytes
//     blocks:FILE                         a file of "displacement length" lines
// clang-format on
//
// Sizes take the suffixes K, M and G (powers of 1024).
#pragma once

#include <string>

#include "ucs/layout/layout.hpp"

namespace cuda_nc {

// Returns null and puts one sentence into *error_p where the text is wrong.
layout_ref parse_layout(const std::string &text, std::string *error_p);

}  // namespace cuda_nc
