#!/usr/bin/env python3
"""Compares the transport's mirror of UCX's tables with a release's debug information.

usage: check_abi.py MIRROR_OBJECT RELEASE LIBUCT

Each structure of cuda_nc::uct::abi must have the size of UCX's of the same name, and each member
the offset and size of UCX's member of the same name. Prints one line for each difference; exit
status 1 where there is one.
"""
import re
import sys

from elftools.elf.elffile import ELFFile

# Ours without counterpart: parts that UCX spells as anonymous structures.
PARTS = {'rma_limits', 'am_limits'}
# Ours is the longest of all releases: the rest is not read.
MAY_BE_LONGER = {'uct_md_ops', 'uct_md_attr_v2'}
# Ours has the first members alone.
MAY_BE_SHORTER = {'uct_iface_attr_v2_t'}
# What differs by release has its number at the end: uct_iface_attr_1_22.
BY_RELEASE = {
    'uct_iface_internal_ops': 'uct_iface_internal_ops',
    'uct_iface_attr': 'uct_iface_attr_v2_t',
}
# UCX has a type's name where we have a shorter one.
TYPEDEFS = {
    'uct_ppn_bandwidth': 'uct_ppn_bandwidth_t',
    'ucs_linear_func': 'ucs_linear_func_t',
    'uct_perf_attr_t': 'uct_perf_attr_t',
    'uct_md_attr_v2': 'uct_md_attr_v2_t',
}


def name_of(die):
    attribute = die.attributes.get('DW_AT_name')
    return attribute.value.decode() if attribute else None


def resolve(die):
    while die.tag in ('DW_TAG_typedef', 'DW_TAG_const_type', 'DW_TAG_volatile_type'):
        die = die.get_DIE_from_attribute('DW_AT_type')
    return die


def size_of(die):
    die = resolve(die)
    if die.tag == 'DW_TAG_pointer_type':
        return 8
    if die.tag == 'DW_TAG_array_type':
        size = size_of(die.get_DIE_from_attribute('DW_AT_type'))
        for dimension in die.iter_children():
            bound = dimension.attributes.get('DW_AT_upper_bound')
            count = dimension.attributes.get('DW_AT_count')
            size *= bound.value + 1 if bound else count.value
        return size
    return die.attributes['DW_AT_byte_size'].value


def members_of(die, base=0, prefix=''):
    """[(dotted name, offset, size)], anonymous and nested structures and unions unfolded."""
    members = []
    for child in die.iter_children():
        if child.tag != 'DW_TAG_member':
            continue
        offset = child.attributes.get('DW_AT_data_member_location')
        offset = base + (offset.value if offset else 0)
        name = prefix + (name_of(child) or '')
        inner = resolve(child.get_DIE_from_attribute('DW_AT_type'))
        members.append((name, offset, size_of(inner)))
        if inner.tag in ('DW_TAG_structure_type', 'DW_TAG_union_type'):
            members += members_of(inner, offset, name + '.')
    return members


def structures(path, wanted):
    """{name: (size, members)} of the structures whose name `wanted` accepts."""
    found = {}
    info = ELFFile(open(path, 'rb')).get_dwarf_info()
    todo = []
    for unit in info.iter_CUs():
        todo.append(unit.get_top_DIE())
        while todo:
            for die in todo.pop().iter_children():
                name = name_of(die)
                if die.tag == 'DW_TAG_namespace':
                    todo.append(die)
                elif name is None or name in found or not wanted(name):
                    continue
                elif die.tag == 'DW_TAG_structure_type' and 'DW_AT_byte_size' in die.attributes:
                    found[name] = (size_of(die), members_of(die))
                elif die.tag == 'DW_TAG_typedef' and name.endswith('_t'):
                    target = resolve(die)
                    if 'DW_AT_byte_size' in target.attributes:
                        found[name] = (size_of(target), members_of(target))
    return found


def main():
    mirror_path, release, library = sys.argv[1:]
    minor = release.split('.')[1]
    mirror = structures(mirror_path, lambda name: name.startswith(('uct_', 'ucs_')))
    counterpart = {}
    for name in mirror:
        numbered = re.fullmatch(r'(\w+)_1_(\d+)', name)
        if numbered:
            if numbered[2] == minor:
                counterpart[name] = BY_RELEASE[numbered[1]]
        elif name not in PARTS:
            counterpart[name] = TYPEDEFS.get(name, name)
    theirs = structures(library, lambda name: name in set(counterpart.values()))

    differences, compared = [], 0
    if 'uct_iface_internal_ops' not in counterpart.values():
        differences.append(f'no table uct_iface_internal_ops_1_{minor}')
    for name, other in sorted(counterpart.items()):
        size, members = mirror[name]
        if other not in theirs:
            differences.append(f'{name}: UCX {release} has no {other}')
            continue
        their_size, their_members = theirs[other]
        if (size > their_size and name not in MAY_BE_LONGER
                or size < their_size and other not in MAY_BE_SHORTER):
            differences.append(f'{name}: {size} bytes, UCX {release} has {their_size}')
        layout = {member: (offset, length) for member, offset, length in their_members}
        for member, offset, length in members:
            last = member.split('.')[-1]
            if last.startswith('reserved') or member.startswith('mode.words'):
                continue
            if member not in layout:
                if name in MAY_BE_LONGER and offset >= their_size:
                    continue
                differences.append(f'{name}.{member}: not in UCX {release}')
            elif layout[member] != (offset, length):
                differences.append(f'{name}.{member}: at {offset}, {length} bytes; UCX {release} '
                                   f'has it at {layout[member][0]}, {layout[member][1]} bytes')
            compared += 1
    for line in differences:
        print(line)
    print(f'{len(counterpart)} structures, {compared} members compared with UCX {release}')
    # Fewer would mean that the debug information was not read.
    return 1 if differences or len(counterpart) < 20 or compared < 250 else 0


sys.exit(main())
