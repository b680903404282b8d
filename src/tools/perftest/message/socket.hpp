// A TCP connection between the two processes of a test: addresses, plans and results, never the
// measured messages. No call waits longer than its limit; each throws run_error, also where the
// other process has gone.
#pragma once

#include <string>

namespace cuda_nc::tools {

class connection {
  public:
    connection() = default;
    explicit connection(int descriptor) noexcept : descriptor_(descriptor) {}
    ~connection();
    connection(connection &&other) noexcept;
    connection &operator=(connection &&other) noexcept;

    // Texts of any bytes, in order.
    void send(const std::string &text, double limit_s);
    std::string receive(double limit_s);

    // Each costs a system call. has_input(): receive() would not wait to begin.
    bool has_input() const noexcept;
    bool is_peer_gone() const noexcept;

  private:
    void wait_for(short event, double until, double limit_s) const;
    void send_bytes(const char *bytes, size_t size, double limit_s);
    void receive_bytes(char *bytes, size_t size, double limit_s);

    int descriptor_ = -1;
};

class listener {
  public:
    // Port 0 takes a free one.
    listener(const std::string &address, int port);
    ~listener();
    listener(const listener &) = delete;
    listener &operator=(const listener &) = delete;

    int port() const noexcept { return port_; }
    connection accept(double limit_s) const;

  private:
    int descriptor_ = -1, port_ = 0;
};

// Tries until somebody listens there.
connection connect_to(const std::string &host, int port, double limit_s);

}  // namespace cuda_nc::tools
