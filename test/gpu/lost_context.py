#!/usr/bin/env python3
"""A kernel that traps in the middle of traffic, which loses the context: all processes end, no wrong
byte is delivered, and the next job is well."""
import common


common.main(lambda: common.survive("trap"))
