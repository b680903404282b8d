// A buffer in host, GPU or simulated GPU memory that a benchmark fills and reads back.
#pragma once

#include <memory>
#include <string>
#include <vector>

class test_memory {
  public:
    virtual ~test_memory() = default;

    // `kind`: host, cuda, sim. CUDA memory is on GPU `rank` modulo their number; nothing links to
    // CUDA. Null where there is no such memory.
    static std::unique_ptr<test_memory> make(const std::string &kind, size_t size, int rank);

    void *address() const { return address_; }
    virtual void write(const std::vector<unsigned char> &bytes) = 0;
    virtual std::vector<unsigned char> read() = 0;
    // Waits for all work on its GPU. False: some of it failed.
    virtual bool is_well() { return true; }

  protected:
    void *address_ = nullptr;
    size_t size_ = 0;
};
