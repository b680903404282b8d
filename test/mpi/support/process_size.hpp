// What a process holds of the machine.
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <cstdio>

namespace mpi_test {

struct process_size {
    long kilobytes = 0;    // resident
    long descriptors = 0;  // open files
    long mappings = 0;     // of its address space

    static process_size now() {
        process_size found;
        if (FILE *file = std::fopen("/proc/self/statm", "r")) {
            long all = 0, resident = 0;
            if (std::fscanf(file, "%ld %ld", &all, &resident) == 2) {
                found.kilobytes = resident * (sysconf(_SC_PAGESIZE) / 1024);
            }
            std::fclose(file);
        }
        if (DIR *directory = opendir("/proc/self/fd")) {
            while (readdir(directory) != nullptr) {
                ++found.descriptors;
            }
            closedir(directory);
            found.descriptors -= 3;  // ".", ".." and the directory's own
        }
        if (FILE *file = std::fopen("/proc/self/maps", "r")) {
            for (int c; (c = std::fgetc(file)) != EOF;) {
                found.mappings += c == '\n';
            }
            std::fclose(file);
        }
        return found;
    }
};

}  // namespace mpi_test
