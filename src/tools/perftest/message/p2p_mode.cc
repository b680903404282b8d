#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/message/p2p_mode.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "cuda_nc/cuda_nc.h"
#include "tools/perftest/message/options.hpp"
#include "tools/perftest/message/p2p_session.hpp"
#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

struct p2p_options {
    message_options all;
    std::string host, transport = "both";
    int port = 13338;
    bool fork = false;
};

int run_server(const p2p_options &o) {
    const listener at("", o.port);
    fmt::print("# waiting for a client at port {}\n", at.port());
    std::fflush(stdout);
    return serve(at, o.all.plan.timeout);
}

bool run_client(const p2p_options &o, const std::string &host, int port) {
    message_plan plan = make_plan(o.all);
    fmt::print("# nc_perftest {} p2p, {}, {} rows; ratio: to contiguous memory, in time\n",
               cuda_nc_version(), now(), plan.cases.size() * plan.tests.size());
    p2p_results results;
    const bool both = o.transport == "both";
    for (const std::string &transport :
         both ? std::vector<std::string>{"y", "n"} : std::vector<std::string>{o.transport}) {
        plan.transport = transport;
        plan.more = both && transport == "y";
        run_plan(plan, host, port, &results);
        if (!results.good) {
            break;
        }
    }
    results.good = results.good && !results.rows.empty();
    message_heading about;
    about.version = cuda_nc_version();
    about.mode = "p2p";
    about.command = o.all.command;
    about.date = now();
    about.software = results.software;
    about.memory = results.memory;
    about.device = results.device;
    about.environment = message_environment();
    save_results(o.all, about, results.rows);
    return results.good;
}

// The server as a child of this process.
int run_both(const p2p_options &o) {
    share_terminal();
    const listener at("127.0.0.1", 0);
    const pid_t parent = getpid();
    std::fflush(nullptr);
    const pid_t server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        try {
            _exit(getppid() == parent ? serve(at, o.all.plan.timeout) : 1);
        } catch (const std::exception &failure) {
            fmt::print(stderr, "nc_perftest: server: {}\n", failure.what());
            _exit(1);
        }
    }
    if (server < 0) {
        throw run_error("fork failed: no process could be started");
    }
    bool good = false;
    try {
        good = run_client(o, "127.0.0.1", at.port());
    } catch (...) {
        kill(server, SIGKILL);
        waitpid(server, nullptr, 0);
        throw;
    }
    if (!good) {
        kill(server, SIGTERM);
    }
    int status = 0;
    waitpid(server, &status, 0);
    return good && status == 0 ? 0 : 1;
}

int run_p2p(const p2p_options &o) {
    if (o.all.list) {
        return list_layouts();
    }
    if (o.all.memory.size() > 2 || o.all.gpus.size() > 2) {
        throw run_error("-m and --gpus take at most two values: the client's and the server's");
    }
    if (o.fork && !o.host.empty()) {
        throw run_error("--fork runs both sides here: it takes no HOST");
    }
    if (o.fork) {
        return run_both(o);
    }
    return o.host.empty() ? run_server(o) : (run_client(o, o.host, o.port) ? 0 : 1);
}

}  // namespace

std::function<int()> add_p2p_options(CLI::App *mode, const std::string &command) {
    auto o = std::make_shared<p2p_options>();
    o->all.command = command;
    mode->add_option("HOST", o->host, "Where the server runs; without it this is the server");
    mode->add_option("-p,--port", o->port, "TCP port for the processes to find each other")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str();
    mode->add_flag("--fork", o->fork, "Run both processes on this machine");
    mode->add_option("--transport", o->transport,
                     "With the transport cuda_nc (y), without (n), or one after the other (both)")
        ->check(CLI::IsMember({"y", "n", "both"}))
        ->capture_default_str();
    mode->add_option("--gpus", o->all.gpus, "The client's GPU and the server's")
        ->delimiter(',')
        ->capture_default_str();
    add_message_options(mode, &o->all, {"latency", "bandwidth", "bidir"});
    return [o] { return run_p2p(*o); };
}

}  // namespace cuda_nc::tools
