// The `outboard` command: reads the command line and calls a verb.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "base/check.hh"
#include "base/schemes.hh"
#include "base/settings.hh"
#include "base/version.hh"
#include "tool/exit_status.hh"
#include "tool/parts.hh"
#include "tool/text.hh"
#include "tool/verbs.hh"

namespace outboard::tool {
namespace {

/// The form of each scheme's addresses, and the default port.
std::string url_help() {
  std::string text = fmt::format("URLs: {}", url_forms());
  for (const scheme_traits& each : schemes()) {
    if (each.default_port) text += fmt::format(" (default port: {})", each.default_port);
  }
  return text;
}

std::string footer() {
  return fmt::format(
      "{}.\n"
      "Configuration: /etc/outboard/outboard.toml, then ~/.config/outboard/outboard.toml, then\n"
      "variables (OUTBOARD_...), then options; later ones win. `outboard settings` lists them all.\n"
      "Exit status: 0 success, 1 failure, 2 wrong usage, 3 no server answered, 4 the server refused,\n"
      "5 the server is full or shuts down, 6 wrong configuration. `run` returns the program's own\n"
      "status, 128 + N if signal N ended it, 126 if it cannot be executed, 127 if it was not found.",
      url_help());
}

void add_config(CLI::App& verb, common_flags& common) {
  verb.add_option("--config", common.config_file, "read this file instead of the system's and the user's")
      ->type_name("FILE");
}

/// What the help shows for the value of a setting.
std::string type_name(const setting& s) {
  if (s.form == value_form::urls) return "URL[,URL]";
  if (s.form == value_form::path) return "FILE";
  if (s.form == value_form::number) return s.name.ends_with("_seconds") ? "SECONDS" : "NUMBER";
  std::string words(s.accepted);
  for (std::size_t at; (at = words.find(", ")) != words.npos;) words.replace(at, 2, "|");
  return words;
}

/// Adds the flag of a setting. A flag that is repeated gives a list.
void add_setting(CLI::App& verb, common_flags& common, std::string_view section, std::string_view name) {
  const setting* s = find_setting(section, name);
  CHECK(s && !s->flag.empty());
  const std::string flag(s->flag), key = s->key(), help(s->meaning);
  if (s->form == value_form::flag) {
    verb.add_flag_callback(
        flag, [&common, key] { common.settings[key] = "1"; }, help);
    return;
  }
  verb.add_option_function<std::vector<std::string>>(
          flag,
          [&common, key](const std::vector<std::string>& texts) {
            std::string& joined = common.settings[key];
            joined += fmt::format("{}{}", joined.empty() ? "" : ",", fmt::join(texts, ","));
          },
          help)
      ->type_name(type_name(*s))
      ->take_all()
      ->expected(1);
}

void add_server(CLI::App& verb, common_flags& common) {
  add_setting(verb, common, "", "server");
  add_setting(verb, common, "", "token_file");
  add_setting(verb, common, "", "tls");
  add_config(verb, common);
}

void add_library(CLI::App& verb, common_flags& common) {
  verb.add_option("--library", common.library,
                  "folder of the client library; default: lib/outboard next to bin")
      ->type_name("FOLDER");
}

CLI::App* add_serve(CLI::App& app, common_flags& common, serve_flags& serve) {
  CLI::App* verb =
      app.add_subcommand("serve", "lend this machine's GPUs to programs, here and on other machines");
  for (const char* name :
       {"listen", "device", "token_file", "tokens_file", "tls", "insecure", "log", "log_format"})
    add_setting(*verb, common, "", name);
  add_setting(*verb, common, "limits", "drain_seconds");
  add_config(*verb, common);
  verb->footer(fmt::format(
      "The server's processes leave no core files, and only root can attach a debugger to them.\n{}",
      footer()));
  verb->add_option("--private", serve.private_folder)->group("");
  verb->add_option("--ready-fd", serve.ready_descriptor)->group("");
  return verb;
}

CLI::App* add_token(CLI::App& app, common_flags& common, token_flags& token) {
  CLI::App* verb =
      app.add_subcommand("token", "make, list and revoke the named tokens of this machine's server");
  verb->require_subcommand(1);
  CLI::App* const create =
      verb->add_subcommand("create", "make a token for a person or a group, and print it");
  create
      ->add_option("--expires", token.lifetime,
                   "how long it lets anybody in: 30d, 12h, 45m; default: until it is revoked")
      ->type_name("TIME");
  CLI::App* const list = verb->add_subcommand("list", "list the tokens, without what is secret");
  list->add_flag("--json", common.json, "print JSON");
  CLI::App* const revoke =
      verb->add_subcommand("revoke", "end a token, and the sessions of those who have it");
  for (CLI::App* one : {create, list, revoke}) {
    if (one != list) one->add_option("NAME", token.name)->required();
    add_setting(*one, common, "", "tokens_file");
    add_config(*one, common);
    one->callback([&token, one] { token.action = one->get_name(); });
  }
  return verb;
}

CLI::App* add_run(CLI::App& app, common_flags& common) {
  CLI::App* verb = app.add_subcommand(
      "run", "run a program, unchanged, on a server's GPUs; without a server, on this machine's own");
  verb->footer(fmt::format("After the options: [--] COMMAND [ARGUMENT...]\n{}", footer()));
  add_server(*verb, common);
  for (const char* name : {"device", "wait_seconds", "trace", "log"}) add_setting(*verb, common, "", name);
  add_library(*verb, common);
  return verb;
}

CLI::App* add_worker(CLI::App& app, worker_flags& worker) {
  CLI::App* verb = app.add_subcommand("worker", "")->group("");
  verb->add_option("--parent", worker.parent)->required();
  verb->add_flag("--probe", worker.probe);
  verb->add_flag("--warm", worker.warm);
  verb->add_flag("--opencl", worker.opencl);
  verb->add_flag("--confine", worker.confine);
  verb->add_option("--folder", worker.folder);
  verb->add_option("--remove-folders", worker.remove_folders);
  verb->add_option("--compilers", worker.compilers);
  verb->add_option("--tidy", worker.tidy.directory);
  verb->add_option("--tidy-size", worker.tidy.size);
  verb->add_option("--tidy-per-identity", worker.tidy.per_identity);
  verb->add_flag("--monitor", worker.monitor);
  verb->add_flag("--gate", worker.gate);
  verb->add_flag("--tls", worker.tls);
  verb->add_option("--checkpoint", worker.checkpoint);
  verb->add_option("--visible", worker.visible)->take_all();
  verb->add_flag("--visible-in-order", worker.visible_in_order);
  verb->add_option("--cache-directory", worker.cache.directory);
  verb->add_option("--cache-size", worker.cache.size);
  verb->add_option("--device", worker.device)->required();
  verb->add_option("--setting", worker.settings)->take_all();
  verb->add_option("--plugin", worker.plugins)->take_all();
  return verb;
}

/// Returns where the program of `run` begins among the arguments: after "--", or with the first argument that
/// is neither a flag of ours nor a flag's value. From there on nothing is ours to parse. argc if there is
/// none.
int find_program(const CLI::App& run_verb, int argc, char** argv) {
  if (argc < 2 || run_verb.get_name() != argv[1]) return argc;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--" || argument.empty() || argument[0] != '-') return i;
    const CLI::Option* option = run_verb.get_option_no_throw(argument);
    if (option && option->get_items_expected() > 0) ++i;
  }
  return argc;
}

/// The verbs that users see, in the order of the help; hidden ones have no group.
std::vector<const CLI::App*> known_verbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
}

std::string verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : known_verbs(app)) names.push_back(verb->get_name());
  return fmt::format("{}", fmt::join(names, ", "));
}

int complain_of_verb(const CLI::App& app, std::string_view word) {
  return complain(exit_usage, fmt::format("there is no verb \"{}\"; known: {}; see outboard --help", word,
                                          verbs_of(app)));
}

/// Finds hidden verbs, too. nullptr: there is none of that name.
const CLI::App* find_verb(const CLI::App& app, std::string_view name) {
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_name() == name) return verb;
  }
  return nullptr;
}

/// `outboard version` and `outboard help [VERB]` answer as the flags of these names do.
int answer_word(const CLI::App& app, std::string_view word, const std::string& verb) {
  if (word == "version") return print(fmt::format("{}\n", product));
  const CLI::App* const about = verb.empty() ? &app : find_verb(app, verb);
  if (!about || about->get_group().empty()) return complain_of_verb(app, verb);
  return print(about->help(verb.empty() ? "" : app.get_name()));
}

/// The verbs that ask servers.
struct asking_verbs {
  CLI::App *devices, *sessions, *doctor, *reload, *end;
};

asking_verbs add_asking(CLI::App& app, common_flags& common, std::uint64_t& session) {
  const asking_verbs made{
      app.add_subcommand("devices", "list the devices of a server, or of this machine"),
      app.add_subcommand("sessions", "list the sessions of a server: who uses it, and who waits"),
      app.add_subcommand("doctor", "show what is installed, which servers answer, and what is wrong"),
      app.add_subcommand("reload", "have a server read its identities and limits again (right: administer)"),
      app.add_subcommand("end", "end a session of any identity (right: administer)")};
  add_server(*made.reload, common);
  add_server(*made.end, common);
  made.end->add_option("ID", session, "the session's number, as `outboard sessions` shows it")->required();
  for (CLI::App* verb : {made.devices, made.sessions, made.doctor}) {
    add_server(*verb, common);
    verb->add_flag("--json", common.json, "print JSON");
  }
  add_setting(*made.devices, common, "", "device");
  add_setting(*made.doctor, common, "", "device");
  add_library(*made.doctor, common);
  return made;
}

int command(int argc, char** argv) {
  CLI::App app("Outboard: GPUs of other machines for unchanged programs", "outboard");
  app.require_subcommand(0, 1);
  app.set_version_flag("-V,--version", std::string(product));
  app.footer(footer());
  common_flags common;
  serve_flags serve;
  worker_flags worker;
  token_flags token;
  CLI::App* const serve_verb = add_serve(app, common, serve);
  CLI::App* const run_verb = add_run(app, common);
  std::uint64_t session = 0;
  const asking_verbs asking = add_asking(app, common, session);
  CLI::App* const token_verb = add_token(app, common, token);
  CLI::App* const settings_verb =
      app.add_subcommand("settings", "list every setting, its value here, and what set it");
  bool example = false, document = false;
  settings_verb->add_flag("--example", example, "print an outboard.toml that shows all defaults");
  settings_verb->add_flag("--document", document)->group("");
  settings_verb->add_flag("--json", common.json, "print JSON");
  add_config(*settings_verb, common);
  CLI::App* const worker_verb = add_worker(app, worker);
  // People try these words before they know the flags.
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "help" || first == "version") return answer_word(app, first, argc > 2 ? argv[2] : "");
  if (!first.empty() && first[0] != '-' && !find_verb(app, first)) return complain_of_verb(app, first);
  const int program = find_program(*run_verb, argc, argv);
  try {
    app.parse(std::min(program, argc), argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& e) {
    const bool of_verb = find_verb(app, first) != nullptr;
    return complain(exit_usage, fmt::format("{}; see outboard {}--help", e.what(),
                                            of_verb ? fmt::format("{} ", first) : std::string()));
  }
  if (app.get_subcommands().empty())
    return complain(exit_usage,
                    fmt::format("no verb is given; known: {}; see outboard --help", verbs_of(app)));
  if (serve_verb->parsed()) return verb_serve(common, serve);
  if (run_verb->parsed()) {
    const bool dashes = program < argc && std::string_view(argv[program]) == "--";
    return verb_run(common, {argv + program + (dashes ? 1 : 0), argv + argc});
  }
  if (asking.devices->parsed()) return verb_devices(common);
  if (asking.sessions->parsed()) return verb_sessions(common);
  if (asking.doctor->parsed()) return verb_doctor(common);
  if (asking.reload->parsed()) return verb_reload(common);
  if (asking.end->parsed()) return verb_end(common, session);
  if (token_verb->parsed()) return verb_token(common, token);
  if (settings_verb->parsed()) return verb_settings(common, example, document);
  CHECK(worker_verb->parsed());
  return verb_worker(worker);
}

}  // namespace

int complain(int status, const std::string& sentence) {
  // A part of the sentence may come from a server.
  std::fputs(fmt::format("outboard: {}\n", printable(sentence)).c_str(), stderr);
  return status;
}

int complain_of_configuration(const outboard::error& problem) {
  return complain(problem.reason != 0 ? problem.reason : exit_configuration, problem.message);
}

namespace {

outboard::error wrong_flag(const std::string& sentence) { return {action::fail, sentence, exit_usage}; }

/// Checks that each URL of a flag names a transport that exists, and is written as that transport wants it.
status check_given_urls(const config& c, const common_flags& flags) {
  auto transports = make_transports(c);
  if (!transports.ok()) return std::move(transports).error();
  for (const auto& [key, urls] : {std::pair("server", &c.servers), std::pair("listen", &c.listen)}) {
    for (const std::string& url : *urls) {
      const status good = flags.given(key) ? transports->check(url) : status{};
      if (!good.ok()) return wrong_flag(fmt::format("--{}: {}", key, good.error().message));
    }
  }
  return {};
}

}  // namespace

result<config> load_with_flags(const common_flags& flags) {
  config_sources sources = default_config_sources();
  sources.must_exist = flags.config_file;
  auto c = load_config(sources);
  if (!c.ok()) return c;
  for (const auto& [key, text] : flags.settings) {
    const setting* s = find_setting(key);
    CHECK(s);
    const status set = set_by_text(*c, *s, s->flag, text);
    if (!set.ok()) return wrong_flag(set.error().message);
    c->origins[key] = s->flag;
  }
  if (flags.given("server") || flags.given("listen")) OUTBOARD_TRY(check_given_urls(*c, flags));
  return c;
}

}  // namespace outboard::tool

int main(int argc, char** argv) { return outboard::tool::command(argc, argv); }
