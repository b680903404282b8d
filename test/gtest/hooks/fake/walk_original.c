int walk_original(int n) {
    return n + 1;
}
