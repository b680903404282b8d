/*
 * Calls of other libraries' functions, for the walk over loaded objects; compiled lazily bound,
 * with full RELRO, and without a PLT.
 */
int walk_original(int);

static int (*pointer)(int) = walk_original; /* a relocation of data */

int walk_by_call(int n) {
    return walk_original(n);
}
int walk_by_pointer(int n) {
    return pointer(n);
}
int (*walk_address(void))(int) {
    return walk_original;
}
