#include "tools/perftest/message/p2p_session.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

#include <fmt/core.h>

#include "tools/perftest/message/memory.hpp"
#include "tools/perftest/message/options.hpp"
#include "tools/perftest/message/report.hpp"
#include "tools/perftest/message/point_to_point.hpp"
#include "tools/perftest/message/plugin.hpp"
#include "tools/perftest/support/program.hpp"
#include "tools/perftest/support/progress.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/message/ucp_messenger.hpp"
#include "tools/perftest/support/watchdog.hpp"

namespace cuda_nc::tools {
namespace {

enum exit_code { done = 0, failed = 1, more_follows = 3, wrong_client = 4 };

constexpr double start_limit = 60;  // seconds for UCX and a GPU to get ready

bool shares_terminal = false;

// Ends the process at once: UCX and a GPU may still use its memory.
[[noreturn]] void leave(const std::exception &why) {
    std::fflush(stdout);
    if (!shares_terminal || dynamic_cast<const peer_gone *>(&why) == nullptr) {
        print_error("nc_perftest", why.what());
    }
    _exit(failed);
}

// Before this process reads a setting: each is read once.
void choose_transport(const message_plan &plan) {
    setenv("UCX_CUDA_NC_TRANSPORT", plan.transport.c_str(), 1);
}

void run_side(int rank, connection peer, const message_plan &plan,
              const std::function<void(const ucp_messenger &)> &on_start,
              const begin_handler &on_begin, const row_handler &on_row) {
    watch_for(start_limit + plan.timeout, "starting UCX");
    const ucp_library &ucp = load_ucp();
    if (plan.transport == "y" && ucp.major == 1 && ucp.minor < 19) {
        throw run_error(
            fmt::format("the transport cuda_nc needs UCX 1.19 or later; the loader finds {}",
                        ucp.ucp_get_version_string()));
    }
    load_plugin();  // also where its transport stays away: UCX then knows its settings
    ucp_messenger messages(rank, std::move(peer), plan.timeout, leave);
    const std::string used = messages.transports();
    if (plan.transport == "y" && !used.empty() && used.find("cuda_nc") == std::string::npos) {
        throw run_error(fmt::format(
            "UCX does not use the transport cuda_nc, but {} (does UCX_TLS leave it out?)", used));
    }
    on_start(messages);
    run_point_to_point_tests(messages, plan, on_begin, on_row);
    watch_for(plan.timeout + 60, "closing the connection");
}

// In a child: returns its exit code.
int run_server_side(connection client, double limit_s) {
    message_plan plan;
    try {
        plan = plan_from_json(client.receive(limit_s));
    } catch (const run_error &failure) {
        print_error("nc_perftest", fmt::format("{}; waiting for the next client", failure.what()));
        return wrong_client;
    }
    choose_transport(plan);
    run_side(
        1, std::move(client), plan, [](const ucp_messenger &) {}, [](const std::string &) {},
        [](const message_row &) {});
    return plan.more ? more_follows : done;
}

void write_line(int to, const nlohmann::json &what) {
    const std::string text =
        what.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    for (size_t at = 0; at < text.size();) {
        const ssize_t written = write(to, text.data() + at, text.size() - at);
        if (written < 0 && errno != EINTR) {
            throw run_error("a result could not be written to the parent process");
        }
        at += written > 0 ? static_cast<size_t>(written) : 0;
    }
}

int run_client_side(message_plan plan, const std::string &host, int port, int results) {
    choose_transport(plan);
    choose_memory(&plan);
    connection server = connect_to(host, port, plan.timeout);
    server.send(to_json(plan), plan.timeout);
    bool good = true;
    auto on_start = [&](const ucp_messenger &messages) {
        print_message_heading(plan.transport, messages.transports());
        write_line(results, {{"library", std::string("UCX ") + load_ucp().ucp_get_version_string()},
                             {"device", describe_memory(plan.memory.front(), plan.gpus.front())},
                             {"memory", of_rank(plan.memory, 0) + "," + of_rank(plan.memory, 1)}});
    };
    progress_counter progress(plan.cases.size() * plan.tests.size());
    auto on_begin = [&](const std::string &layout) { progress.begin(layout); };
    auto on_row = [&](const message_row &row) {
        progress.clear();
        print_message_row(row);
        good = good && row.error.empty();
        write_line(results, {{"row", to_json(row)}});
    };
    run_side(0, std::move(server), plan, on_start, on_begin, on_row);
    return good ? done : failed;
}

// Forks; the child leaves with what `work` returns.
template <class Work>
pid_t start_child(Work &&work) {
    std::fflush(nullptr);
    if (std::ferror(stdout) != 0) {
        throw std::system_error(errno, std::generic_category(), "results cannot be printed");
    }
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0) {
        throw run_error("fork failed: no process could be started");
    }
    if (child > 0) {
        return child;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // an interrupted test leaves nothing running
    if (getppid() != parent) {
        _exit(failed);
    }
    try {
        std::exit(finish_output("nc_perftest", work()));
    } catch (const std::exception &failure) {
        leave(failure);
    }
}

int wait_for_child(pid_t child, const char *who) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        fmt::print(stderr, "nc_perftest: the {} ended by signal {}\n", who, WTERMSIG(status));
        return failed;
    }
    return WEXITSTATUS(status);
}

void handle_line(const std::string &line, p2p_results *results_p) {
    const nlohmann::json what = nlohmann::json::parse(line);
    if (what.contains("row")) {
        results_p->rows.push_back(what["row"]);
    } else {
        results_p->software = what.value("library", "");
        results_p->device = what.value("device", "");
        results_p->memory = what.value("memory", "");
    }
}

}  // namespace

void share_terminal() noexcept {
    shares_terminal = true;
}

int serve(const listener &at, double limit_s) {
    for (;;) {
        connection client = at.accept(limit_s);
        const pid_t child =
            start_child([&] { return run_server_side(std::move(client), limit_s); });
        client = connection();  // the child's
        const int status = wait_for_child(child, "server");
        if (status != more_follows && status != wrong_client) {
            return status;
        }
    }
}

void run_plan(const message_plan &plan, const std::string &host, int port, p2p_results *results_p) {
    int ends[2];
    if (pipe(ends) != 0) {
        throw run_error("pipe failed: no file descriptors are left");
    }
    const pid_t child = start_child([&] {
        close(ends[0]);
        return run_client_side(plan, host, port, ends[1]);
    });
    close(ends[1]);
    std::FILE *lines = fdopen(ends[0], "r");
    std::string line;
    for (int one; (one = std::fgetc(lines)) != EOF;) {
        if (one != '\n') {
            line += static_cast<char>(one);
            continue;
        }
        handle_line(line, results_p);
        line.clear();
    }
    std::fclose(lines);
    results_p->good = wait_for_child(child, "client") == done && results_p->good;
}

}  // namespace cuda_nc::tools
