#!/usr/bin/env python3
"""cudaDeviceReset in the middle of traffic: all processes end, no wrong byte is delivered, and the
next job is well."""
import common


common.main(lambda: common.survive("reset"))
