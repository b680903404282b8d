#!/usr/bin/env python3
"""The structure that docs/architecture.md describes, checked against the files.

usage: python3 -m pytest test/structure          (any directory; needs no build, takes a second)
       test/structure/test_structure.py          the same without pytest
       test/structure/test_structure.py --table  prints the column "may include" of architecture.md
       test/structure/test_structure.py --root DIRECTORY   checks another checkout

Each failure says which file breaks which rule, and what to do.
"""
import functools
import itertools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# ---- what is allowed

# Rooms from the bottom to the top. A room may include itself and the rooms named here, all of which
# stand before it: so arrows go down only. A file belongs to the longest room that holds it.
BASE, LAYOUT, GPU = 'src/ucs/base', 'src/ucs/layout', 'src/ucs/gpu'
WORKLIST, EXEC_HOST, EXEC_KERNELS = 'src/ucs/worklist', 'src/ucs/exec/host', 'src/ucs/exec/kernels'
BACKEND, BACKEND_CUDA, BACKEND_SIM = ('src/ucs/backend', 'src/ucs/backend/cuda',
                                      'src/ucs/backend/sim')
MODEL = 'src/ucs/model'
UCX, MEMORY, CARRIER, ENGINE, PIPE, ONE_SIDED, PROTOCOL, TRANSPORT = (
    'src/uct/cuda_nc/ucx', 'src/uct/cuda_nc/memory', 'src/uct/cuda_nc/carrier',
    'src/uct/cuda_nc/engine', 'src/uct/cuda_nc/pipe', 'src/uct/cuda_nc/one_sided',
    'src/uct/cuda_nc/protocol', 'src/uct/cuda_nc')
DATATYPE = 'src/ucp/dt'
COMMON, MPICH, OPEN_MPI = 'src/hooks/common', 'src/hooks/mpich', 'src/hooks/open_mpi'
HOOKS = 'src/hooks'
CAPI = 'src/capi'
PLUGIN, PRELOAD = 'src/plugin', 'src/plugin/preload'
TOOLS, PERFTEST = 'src/tools', 'src/tools/perftest'
SUPPORT, LAYOUTS, PACK, MESSAGE, TUNE, COMPARE, MPI = (
    f'{PERFTEST}/{mode}'
    for mode in ('support', 'layouts', 'pack', 'message', 'tune', 'compare', 'mpi'))

ROOMS = {
    BASE: (),
    LAYOUT: (BASE, ),
    GPU: (BASE, LAYOUT),
    WORKLIST: (BASE, LAYOUT, GPU),
    EXEC_HOST: (BASE, LAYOUT, GPU),
    EXEC_KERNELS: (BASE, LAYOUT, GPU),
    BACKEND: (BASE, GPU),
    BACKEND_CUDA: (BASE, LAYOUT, GPU, EXEC_KERNELS, BACKEND),
    BACKEND_SIM: (BASE, LAYOUT, GPU, BACKEND),
    MODEL: (BASE, LAYOUT, GPU, EXEC_KERNELS),
    UCX: (BASE, ),
    MEMORY: (BASE, LAYOUT, GPU),
    CARRIER: (BASE, UCX, MEMORY),
    ENGINE: (BASE, GPU, UCX),
    PIPE: (BASE, LAYOUT, GPU, MEMORY, ENGINE),
    ONE_SIDED: (BASE, LAYOUT, GPU, UCX, MEMORY, ENGINE),
    PROTOCOL: (BASE, LAYOUT, GPU, MODEL, UCX, MEMORY, CARRIER, ENGINE, PIPE),
    TRANSPORT: (BASE, GPU, UCX, MEMORY, CARRIER, ONE_SIDED, PROTOCOL),
    DATATYPE: (BASE, LAYOUT, GPU, WORKLIST, EXEC_HOST, MODEL),
    COMMON: (BASE, LAYOUT, GPU, MODEL, DATATYPE),
    OPEN_MPI: (BASE, LAYOUT, GPU, EXEC_HOST, DATATYPE, COMMON),
    MPICH: (BASE, LAYOUT, GPU, DATATYPE, COMMON),
    HOOKS: (BASE, COMMON, MPICH, OPEN_MPI),
    CAPI: (BASE, LAYOUT, GPU, WORKLIST, EXEC_HOST, DATATYPE, COMMON),
    PLUGIN: (),
    PRELOAD: (),
    SUPPORT: (BASE, LAYOUT, GPU, WORKLIST, EXEC_HOST),
    LAYOUTS: (BASE, LAYOUT, SUPPORT),
    PACK: (BASE, LAYOUT, GPU, EXEC_HOST, MODEL, SUPPORT, LAYOUTS),
    MESSAGE: (BASE, LAYOUT, GPU, SUPPORT, LAYOUTS),
    TUNE: (BASE, LAYOUT, GPU, EXEC_KERNELS, MODEL, SUPPORT, LAYOUTS),
    COMPARE: (BASE, SUPPORT),
    MPI: (BASE, LAYOUT, SUPPORT, LAYOUTS, MESSAGE),
    PERFTEST: (SUPPORT, LAYOUTS, PACK, MESSAGE, TUNE, COMPARE),
    TOOLS: (BASE, LAYOUT, GPU, EXEC_HOST, MODEL, SUPPORT, LAYOUTS, TUNE),
}

# Doors: single files that other rooms may include although the room of the file is closed to them.
# file: (rooms or files that may include it, why)
TRANSPORT_ROOMS = (UCX, MEMORY, CARRIER, ENGINE, PIPE, ONE_SIDED, PROTOCOL)
DOORS = {
    'src/uct/cuda_nc/iface.hpp': (TRANSPORT_ROOMS, 'a record: UCX\'s interface with our members'),
    'src/uct/cuda_nc/ep.hpp': (TRANSPORT_ROOMS, 'a record: UCX\'s endpoint with our members'),
    'src/uct/cuda_nc/peers.hpp': ((PROTOCOL, ), 'which endpoint leads to which peer'),
    'src/uct/cuda_nc/counters.hpp': (TRANSPORT_ROOMS, 'numbers that every room counts up'),
    'src/uct/cuda_nc/component.hpp': ((CARRIER, ONE_SIDED), 'the transport\'s name'),
    'src/uct/cuda_nc/choice.hpp': ((TOOLS, ), 'whether the transport is on, and why'),
    'src/uct/cuda_nc/user_buffer.hpp': ((PIPE, PROTOCOL, DATATYPE),
                                        'the contract between datatype and transport'),
    'src/uct/cuda_nc/layout_order.hpp': ((ONE_SIDED, CAPI),
                                         'a put or get with layouts, which UCP cannot carry'),
    'src/uct/cuda_nc/thread_context.hpp': ((UCX, PROTOCOL, DATATYPE, COMMON),
                                           'what a call of UCP carries from one layer to another'),
    'src/uct/cuda_nc/selection.hpp': ((UCX, COMMON), 'eager or rendezvous: hook and transport'),
    'src/uct/cuda_nc/turns.hpp': ((ONE_SIDED, COMMON),
                                  'who posts puts, told by the transport; who waits, in a hook'),
    'src/uct/cuda_nc/transport.h': ((PLUGIN, HOOKS),
                                    'registers the transport, says whether it is wanted'),
    'src/ucs/base/definer.h': ((PRELOAD, ), 'whose functions a caller calls, plain C'),
    'src/ucs/backend/backends.hpp': ((MEMORY, ), 'forked(): a child has no GPU'),
    'src/hooks/interpose.h': ((PLUGIN, PRELOAD), 'how the loader installs the hooks, plain C'),
    'src/hooks/interposed_mpi.h': ((MPICH, ), 'the one list of interposed MPI functions'),
    'src/hooks/interposed_symbols.h': ((OPEN_MPI, ), 'the one list of interposed functions'),
    'src/hooks/mpich/mpich.hpp': (('src/hooks/common/owner.cc', ),
                                  'the list of the MPI libraries that we know'),
    'src/hooks/open_mpi/open_mpi.hpp': (('src/hooks/common/owner.cc', ),
                                        'the list of the MPI libraries that we know'),
}

MOST_LINES = 600  # of a source file; 300 asks for a second look (docs/architecture.md)

# file: why it may have a thread_local
THREAD_LOCALS = {
    'src/capi/error.cc': 'why the thread\'s last call failed',
    'src/hooks/common/datatype_ops.cc': 'the type that this thread sent last, without a lock',
    'src/hooks/common/thread_context.hpp': 'we are inside an MPI library that calls us back',
    'src/hooks/common/watched_types.cc': 'the type that this thread used last, without a lock',
    'src/ucs/backend/cuda/context.cc': 'we are in a call of ours: UCX\'s hooks call us back',
    'src/ucs/backend/cuda/device.cc': 'how many objects this thread has asked for, others\' apart',
    'src/ucp/dt/followed_send.hpp': 'the send in whose call we are, for the datatype',
    'src/ucp/dt/free_list.hpp': 'objects at hand, without a lock',
    'src/ucs/base/trace.cc': 'the number of the thread, asked once',
    'src/ucs/gpu/known_memory.hpp': 'what a hook found of the memory, for the datatype',
    'src/ucs/exec/kernels/launch_pipe.cc': '2 KB of arguments that need not be cleared each time',
    'src/uct/cuda_nc/layout_order.hpp': 'what a call of UCP carries from the C API to the transport',
    'src/uct/cuda_nc/thread_context.cc': 'what a call of UCP carries from one layer to another',
    'src/uct/cuda_nc/thread_context.hpp': 'the same',
}

# file: why it may read the environment
ENVIRONMENT = {
    'src/ucs/base/settings.cc': 'the one table of settings',
    'src/tools/found_libraries.cc': 'PATH, to name the MPI that mpirun would take',
}

CUDA_ROOMS = ('src/ucs/backend/cuda/', 'src/ucs/exec/kernels/')

# Folders of test/gtest without a source folder of the same name: why.
TESTS_OF_NO_FOLDER = {'property': 'random layouts through the whole engine'}

# Tests that are not of the source file of the same name: what they test.
OTHER_NAMES = {
    'test/gtest/ucs/gpu/ipc_test.cc': 'device::ipc_open() and its kin, on each backend',
    'test/gtest/ucs/gpu/launch_test.cc': 'stream::launch(), on each backend',
}

SOURCES = ('.cc', '.hpp', '.h', '.c', '.cu', '.cuh', '.inc')
COMPILED_FOLDERS = ('src', 'test/gtest', 'bench')
DOCUMENTS = ('README.md', 'CONTRIBUTING.md', 'docs/**/*.md')
CODE_DOCUMENTS = ('docs/architecture.md', 'docs/protocol.md', 'docs/extending.md')
PATH_STARTS = ('src', 'test', 'contrib', 'include', 'bench', 'docs', 'examples', 'm4')


# ---- helpers

@functools.lru_cache(maxsize=None)
def files(folder):
    """Paths of all files below a folder, relative to ROOT, sorted."""
    return tuple(sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob('*')
                        if path.is_file() and '__pycache__' not in path.parts))


def sources(*folders):
    return [path for folder in folders for path in files(folder) if path.endswith(SOURCES)]


@functools.lru_cache(maxsize=None)
def text_of(path):
    return (ROOT / path).read_text(encoding='utf-8', errors='replace')


@functools.lru_cache(maxsize=None)
def code_of(path):
    """Without comments and strings, except those of #include; lines keep their numbers."""
    def blank(match):
        found = match.group(0)
        return '\n' * found.count('\n') if found.startswith(('/', '"')) else found

    return re.sub(r'//[^\n]*|/\*.*?\*/|^[ \t]*#[ \t]*include[^\n]*|"(?:\\.|[^"\\\n])*"|'
                  r"'(?:\\.|[^'\\\n])'", blank, text_of(path), flags=re.DOTALL | re.MULTILINE)


def line_of(path, match):
    return code_of(path).count('\n', 0, match.start()) + 1


def room_of(path):
    found = [room for room in ROOMS if path.startswith(room + '/')]
    return max(found, key=len, default=None)


def fail_if_any(problems, advice=''):
    __tracebackhide__ = True
    if problems:
        raise AssertionError('\n' + '\n'.join([*problems, advice]).rstrip())


def short(room):
    return room.removeprefix('src/').removeprefix('uct/')


# ---- the rules

def test_rooms_stand_above_those_that_they_include():
    fail_if_any([f'{room} may include {below}, which does not stand below it: move one of them in '
                 f'ROOMS, or turn the dependency round'
                 for place, (room, allowed) in enumerate(ROOMS.items()) for below in allowed
                 if below not in list(ROOMS)[:place]])


def test_every_source_file_is_in_a_room():
    fail_if_any([f'{path}: its folder is no room. Put the file into a room of docs/architecture.md, '
                 f'or add the room there and to ROOMS' for path in sources('src')
                 if room_of(path) is None])


def is_open_to(door, path):
    allowed = DOORS.get(door, ((), ))[0]
    return room_of(path) in allowed or path in allowed


def includes_of(path):
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', text_of(path), re.MULTILINE):
        name = match.group(1)
        beside = (pathlib.PurePosixPath(path).parent / name).as_posix()
        for candidate in (f'src/{name}', beside):
            if (ROOT / candidate).is_file():
                yield text_of(path).count('\n', 0, match.start()) + 1, candidate
                break


def test_includes_go_down_only():
    problems = []
    for path in sources('src'):
        room = room_of(path)
        for line, included in includes_of(path):
            below = room_of(included)
            if below in (room, None) or room is None or below in ROOMS[room]:
                continue
            if is_open_to(included, path):
                continue
            problems.append(f'{path}:{line}: {short(room)} must not include {short(below)} '
                            f'({included})')
    fail_if_any(problems, 'Move the code down into a room that both may use, or hand the upper '
                'room\'s part in through an interface (docs/architecture.md, "Rooms").')


def test_doors_exist_and_are_used():
    used = {included for path in sources('src') for _, included in includes_of(path)
            if is_open_to(included, path)}
    fail_if_any([f'DOORS: {path} is not there, or no other room includes it: take it out'
                 for path in DOORS if path not in used])


def test_no_file_is_too_long():
    problems = []
    for path in sources('src', 'test', 'bench', 'include') + [
            path for folder in ('contrib', 'test') for path in files(folder)
            if path.endswith(('.sh', '.py'))]:
        lines = text_of(path).count('\n')
        if lines > MOST_LINES:
            problems.append(f'{path} has {lines} lines, {MOST_LINES} are allowed: look for the '
                            f'second idea in it, and give that a file of its own')
    fail_if_any(problems)


def test_tests_mirror_the_sources():
    problems = []
    units = {}
    for path in files('src'):
        pure = pathlib.PurePosixPath(path)
        if pure.suffix in ('.cc', '.hpp', '.c', '.h'):
            units.setdefault(pure.stem, set()).add(pure.parent.as_posix())
    for path in files('test/gtest'):
        if not path.endswith('_test.cc') or path in OTHER_NAMES:
            continue
        pure = pathlib.PurePosixPath(path)
        folder = pure.parent.relative_to('test/gtest').as_posix()
        if folder in TESTS_OF_NO_FOLDER:
            continue
        if not (ROOT / 'src' / folder).is_dir():
            problems.append(f'{path}: there is no src/{folder}. Move the test to the folder of what '
                            f'it tests')
            continue
        name = pure.name[:-len('_test.cc')]
        if name in units and f'src/{folder}' not in units[name]:
            problems.append(
                f'{path}: {name} is in {", ".join(sorted(units[name]))}. Move the test to the same '
                f'folder below test/gtest, or name it after what it tests')
    fail_if_any(problems)


def test_no_product_file_is_named_like_a_test():
    fail_if_any([f'{path}: *_test.* is the name of a test. Rename the file'
                 for path in files('src') if re.search(r'_test\.\w+$', path)])


def found_outside(pattern, allowed):
    return [f'{path}:{line_of(path, match)}: {match.group(0).strip()}' for path in sources('src')
            if not path.startswith(tuple(allowed)) for match in re.finditer(pattern, code_of(path))]


def test_thread_locals_are_few_and_listed():
    fail_if_any(found_outside(r'\bthread_local\b|\b__thread\b', THREAD_LOCALS),
                'A thread-local hides an argument. Pass it; where UCX or MPI stands between, list '
                'the file with its reason in THREAD_LOCALS and in docs/architecture.md.')


def test_listed_exceptions_are_needed():
    problems = []
    for name, listed, pattern in (('THREAD_LOCALS', THREAD_LOCALS, r'\bthread_local\b|\b__thread\b'),
                                  ('ENVIRONMENT', ENVIRONMENT, r'\bgetenv\b')):
        problems += [f'{name}: {path} needs no exception any more: take it out' for path in listed
                     if not (ROOT / path).is_file() or not re.search(pattern, code_of(path))]
    problems += [f'OTHER_NAMES: {path} is not there: take it out' for path in OTHER_NAMES
                 if not (ROOT / path).is_file()]
    problems += [f'TESTS_OF_NO_FOLDER: test/gtest/{name} is not there: take it out'
                 for name in TESTS_OF_NO_FOLDER if not (ROOT / 'test/gtest' / name).is_dir()]
    fail_if_any(problems)


def test_the_environment_is_read_in_settings_alone():
    fail_if_any(found_outside(r'\b(?:secure_)?getenv\s*\(', ENVIRONMENT),
                'Add a setting to src/ucs/base/settings.cc and read config().')


def test_cuda_is_called_in_the_backend_alone():
    fail_if_any(found_outside(r'\b(?:cuda|cu)[A-Z]\w*\s*\(', CUDA_ROOMS),
                'CUDA is called in src/ucs/backend/cuda and src/ucs/exec/kernels alone. Use the '
                'interface in src/ucs/gpu/device.hpp, or extend it in both backends.')


@functools.lru_cache(maxsize=None)
def built_files():
    """Everything that a makefile names, its variables replaced."""
    found = set()
    for path in ('Makefile.am', *(path for folder in ('src', 'test', 'bench', 'contrib', 'examples')
                                  for path in files(folder) if path.endswith('.mk'))):
        text = text_of(path)
        values = dict(re.findall(r'^(\w+)\s*:?=\s*(\S+)\s*$', text, re.MULTILINE))
        values['srcdir'] = values['top_srcdir'] = '.'
        for _ in range(3):
            text = re.sub(r'\$\((\w+)\)', lambda m: values.get(m.group(1), m.group(0)), text)
        found.update(word.removeprefix('./') for word in re.split(r'[\s:=]+', text))
    return found


def test_every_source_file_is_built():
    fail_if_any([f'{path} is in no local.mk, so nothing builds it and no release contains it: list '
                 f'it in the local.mk of its folder' for path in sources(*COMPILED_FOLDERS)
                 if path not in built_files()])


def expand(path):
    """a{b,c}d -> abd, acd."""
    match = re.search(r'\{([^{}]*)\}', path)
    if match is None:
        return [path]
    return list(itertools.chain.from_iterable(
        expand(path[:match.start()] + one + path[match.end():]) for one in match.group(1).split(',')))


def is_there(path):
    """Capitals (NAME, or A) stand for a name that the reader chooses: then the folder must be there.
    Programs that a source file of the same name makes are there, too."""
    if not re.search(r'README|LICENSE|CONTRIBUTING|CHANGELOG', path):
        path = re.split(r'[^/]*(?:[A-Z]{3,}|(?<![\w.-])[A-Z](?![\w]))', path)[0] or '.'
    return (ROOT / path).exists() or any(ROOT.glob(path)) or any(ROOT.glob(path + '.*'))


def paths_in_document(document):
    """Line, path as written, and path from ROOT: of links, and of what looks like a path."""
    folder = pathlib.PurePosixPath(document).parent
    for number, line in enumerate(text_of(document).splitlines(), 1):
        for link in re.findall(r'\]\(([^)\s#]+)[^)]*\)', line):
            if not re.match(r'[a-z]+:', link):
                target = pathlib.PurePosixPath(folder / link)
                parts = []
                for part in target.parts:
                    if part == '..' and parts:
                        parts.pop()
                    elif part != '.':
                        parts.append(part)
                yield number, link, '/'.join(parts)
        for word in re.findall(r'(?<![\w/.$}-])(?:%s)/[\w./{},*+-]*\w[\w./{},*+-]*'
                               % '|'.join(PATH_STARTS), re.sub(r'\]\([^)]*\)', '', line)):
            yield number, word, word.rstrip('.,').rstrip('/')


def test_documents_name_existing_files():
    problems = []
    for pattern in DOCUMENTS:
        for document in sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern)):
            problems += [f'{document}:{line}: {written} is not there: name the file as it is called '
                         f'now' for line, written, path in paths_in_document(document)
                         for one in expand(path) if not is_there(one)]
    fail_if_any(problems)


def test_documents_name_existing_functions():
    """Of the documents about the code: each `name()` is a word of it."""
    words = set()
    for path in sources('src', 'include'):
        words.update(re.findall(r'[A-Za-z_]\w*', code_of(path)))
    problems = []
    for document in CODE_DOCUMENTS:
        for number, line in enumerate(text_of(document).splitlines(), 1):
            for call in re.findall(r'`([\w:~.]+)\([^`]*\)`', line):
                problems += [f'{document}:{number}: {word}() is not in the sources: name it as it is '
                             f'called now' for word in re.findall(r'[A-Za-z_]\w*', call)
                             if word not in words and 'NAME' not in word]
    fail_if_any(problems)


def test_comments_name_existing_files():
    problems = []
    for path in sources('src', 'test', 'bench'):
        for number, line in enumerate(text_of(path).splitlines(), 1):
            comment = re.search(r'(?://|^\s*\*|/\*)(.*)', line)
            for word in re.findall(r'(?<![\w/.$-])(?:src|test|contrib|docs|bench)/[\w./-]*\w',
                                   comment.group(1) if comment else ''):
                if not is_there(word):
                    problems.append(f'{path}:{number}: {word} is not there: name the file as it is '
                                    f'called now')
    fail_if_any(problems)


def rooms_of_document():
    """The table of rooms in architecture.md: room, and the cell "may include"."""
    for line in text_of('docs/architecture.md').splitlines():
        cells = [cell.strip() for cell in line.split('|')]
        if len(cells) >= 5 and re.fullmatch(r'`src/[\w/]+`', cells[1]):
            yield cells[1].strip('`'), cells[3]


def include_cell(room):
    return ', '.join(f'`{short(below)}`' for below in ROOMS[room]) or 'doors only'


def test_architecture_document_has_the_same_rooms():
    written = dict(rooms_of_document())
    problems = [f'docs/architecture.md: no row for {room} in the table of rooms' for room in ROOMS
                if room not in written]
    problems += [f'docs/architecture.md: {room} is no room of ROOMS' for room in written
                 if room not in ROOMS]
    problems += [f'docs/architecture.md: "may include" of {room} should read: {include_cell(room)} '
                 f'(test_structure.py --table prints all)' for room in ROOMS
                 if room in written and written[room] != include_cell(room)]
    fail_if_any(problems)


def test_architecture_document_explains_every_exception():
    document = text_of('docs/architecture.md')
    fail_if_any([f'docs/architecture.md does not name {path}: say there why it is an exception'
                 for path in (*DOORS, *THREAD_LOCALS) if f'`{path}`' not in document])


def test_protocol_document_lists_every_control_message():
    body = re.search(r'enum class control_kind[^{]*\{(.*?)\};', code_of(f'{PROTOCOL}/wire.hpp'),
                     re.DOTALL)
    names = re.findall(r'\w+', body.group(1))
    rows = re.findall(r'^\| (\d+) \| `(\w+)` \|', text_of('docs/protocol.md'), re.MULTILINE)
    assert rows == [(str(number), name) for number, name in enumerate(names)], (
        f'docs/protocol.md: the table of control messages has {rows}, {PROTOCOL}/wire.hpp has '
        f'{names}: a new kind goes to the end of both, and protocol_version goes up')


def test_protocol_document_has_the_version():
    version = re.search(r'protocol_version = (\d+);', code_of(f'{PROTOCOL}/wire.hpp')).group(1)
    assert f'`protocol_version`, {version} |' in text_of('docs/protocol.md')


def main():
    global ROOT
    arguments = sys.argv[1:]
    if arguments[:1] == ['--table']:
        for room in ROOMS:
            print(f'{room}: {include_cell(room)}')
        return 0
    if arguments[:1] == ['--root'] and len(arguments) == 2:
        ROOT = pathlib.Path(arguments[1]).resolve()
    elif arguments:
        print(__doc__)
        return 2
    failed = 0
    for name, test in list(globals().items()):
        if name.startswith('test_'):
            try:
                test()
                print(f'PASS {name}')
            except (AssertionError, OSError) as problem:
                failed += 1
                print(f'FAIL {name}: {problem}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
