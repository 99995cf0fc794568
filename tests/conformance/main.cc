// The PTX conformance suite: a small kernel for each form of instruction, run on the device that the driver
// offers.
//   ptx_conformance --forms FILE[,FILE...] --record FILE     writes what the device computes
//   ptx_conformance --forms ... --compare FILE [--least N]   compares; prints the coverage; fails if a result
//                      differs or fewer than N percent of a column's forms are covered
//   ptx_conformance --forms ... --write FOLDER               writes the kernels as .ptx
//   ptx_conformance --print FORM                             writes one to stdout
//   ptx_conformance --values FORM[,FORM...]                  prints the device's results for each thread
//   ptx_conformance --only FORM ...                          runs this form alone
//   ptx_conformance --faults [--record|--compare FILE]       the programs that must fail (faults.hh)
// Forms run in a child process, so that one that crashes or hangs affects no other.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "execution.hh"
#include "faults.hh"
#include "record.hh"

namespace conformance {
namespace {

constexpr int form_seconds = 120;

struct listed_form {
  std::string name;
  bool at_75 = false, at_90 = false;
};

struct options {
  std::string forms, record, compare, write, print, only, fault, values;
  double least = 0;
  long serve = -1;
  bool faults = false;
};

std::vector<listed_form> read_forms(const options& o) {
  std::vector<listed_form> all;
  std::istringstream files(o.forms);
  for (std::string path; std::getline(files, path, ',');) {
    std::ifstream file(path);
    if (!file) std::fprintf(stderr, "cannot read %s\n", path.c_str()), std::exit(1);
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      listed_form f;
      long at_75 = 0, at_90 = 0;
      if (line.empty() || line[0] == '#' || !(fields >> f.name)) continue;
      fields >> at_75 >> at_90;
      f.at_75 = at_75 > 0, f.at_90 = at_90 > 0;
      if (o.only.empty() || o.only == f.name) all.push_back(f);
    }
  }
  return all;
}

enum class verdict { unknown, ok, refused, wrong };

struct outcome {
  verdict what = verdict::unknown;
  std::string text;  ///< the recorded line, or the reason why there is none
};

std::string one_line(std::string s) {
  for (char& c : s) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return s;
}

/// Whether a kernel really has an instruction of this form.
bool holds(const std::string& text, const std::string& name) {
  return text.find(name + " ") != std::string::npos || text.find(name + ";") != std::string::npos;
}

outcome run_form(device& d, const std::string& name, const options& o,
                 const std::map<std::string, record>& expected) {
  const auto k = kernel_of(form(name));
  if (!k) return {verdict::unknown, "no kernel for this form"};
  if (!holds(text_of(*k), name)) return {verdict::unknown, "its kernel does not hold it"};
  run_result r = d.run(*k);
  normalise(*k, r);
  if (!o.record.empty()) {
    const record made = record_of(*k, r);
    return {made.kind == "failed" ? verdict::refused : verdict::ok, one_line(line_of(name, made))};
  }
  if (r.refused) return {verdict::refused, one_line(r.failure)};
  const auto found = expected.find(name);
  if (found == expected.end()) return {verdict::unknown, "nothing recorded"};
  const std::string why = difference(*k, r, found->second);
  return why.empty() ? outcome{verdict::ok, ""} : outcome{verdict::wrong, one_line(why)};
}

/// The child: forms from `o.serve` on, two lines each.
int serve(const options& o) {
  const auto forms = read_forms(o);
  const auto expected = o.compare.empty() ? std::map<std::string, record>() : read_records(o.compare);
  device d;
  std::printf("DEVICE %s\n", d.name().c_str());
  for (std::size_t n = static_cast<std::size_t>(o.serve); n < forms.size(); ++n) {
    std::printf("BEGIN %zu\n", n);
    std::fflush(stdout);
    const outcome result = run_form(d, forms[n].name, o, expected);
    std::printf("END %zu %d %s\n", n, static_cast<int>(result.what), result.text.c_str());
    std::fflush(stdout);
    // After a sticky error nothing else can run in this process.
    if (result.text.find("cuCtxSynchronize") != std::string::npos) return 0;
  }
  std::printf("DONE\n");
  return 0;
}

class child {
 public:
  child(char** arguments, std::size_t from) {
    int ends[2];
    if (pipe(ends) != 0) std::perror("pipe"), std::exit(1);
    process_ = fork();
    if (process_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]), close(ends[1]);
      std::vector<char*> all;
      for (char** a = arguments; *a; ++a) all.push_back(*a);
      std::string flag = "--serve", number = std::to_string(from);
      all.push_back(flag.data()), all.push_back(number.data()), all.push_back(nullptr);
      execv("/proc/self/exe", all.data());
      _exit(127);
    }
    close(ends[1]);
    from_ = ends[0];
  }
  ~child() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    close(from_);
  }
  /// False if the child has ended or is silent for too long.
  bool line(std::string& out) {
    for (;;) {
      if (const auto end = buffer_.find('\n'); end != std::string::npos) {
        out = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return true;
      }
      pollfd p{from_, POLLIN, 0};
      if (poll(&p, 1, form_seconds * 1000) <= 0) return false;
      char bytes[65536];
      const ssize_t got = read(from_, bytes, sizeof bytes);
      if (got <= 0) return false;
      buffer_.append(bytes, static_cast<std::size_t>(got));
    }
  }

 private:
  pid_t process_;
  int from_;
  std::string buffer_;
};

/// Fills `results`; returns the name of the device.
std::string run_all(char** arguments, std::vector<outcome>& results) {
  std::string device_name;
  std::size_t next = 0;
  while (next < results.size()) {
    child c(arguments, next);
    std::size_t begun = results.size();
    bool done = false;
    for (std::string line; !done && c.line(line);) {
      std::istringstream fields(line);
      std::string word;
      fields >> word;
      if (word == "DEVICE") std::getline(fields >> std::ws, device_name);
      if (word == "BEGIN") fields >> begun;
      if (word == "END") {
        int what = 0;
        fields >> next >> what;
        results[next].what = static_cast<verdict>(what);
        std::getline(fields >> std::ws, results[next].text);
        ++next, begun = results.size();
      }
      done = word == "DONE";
    }
    if (done) break;
    if (device_name.empty()) std::fprintf(stderr, "the device could not be opened\n"), std::exit(77);
    if (begun < results.size())
      results[begun] = {verdict::wrong, "the process ended or hung"}, next = begun + 1;
  }
  return device_name;
}

int report(const std::vector<listed_form>& forms, const std::vector<outcome>& results, const options& o) {
  std::size_t wrong = 0;
  struct column {
    const char* name;
    std::size_t covered = 0, all = 0;
  } columns[] = {{"compute_75"}, {"compute_90"}, {"our own"}};
  for (std::size_t n = 0; n < forms.size(); ++n) {
    static const char* const words[] = {"UNKNOWN", "ok", "REFUSED", "WRONG"};
    const bool ok = results[n].what == verdict::ok;
    if (!ok)
      std::printf("%-8s %s: %s\n", words[static_cast<int>(results[n].what)], forms[n].name.c_str(),
                  results[n].text.c_str());
    wrong += results[n].what == verdict::wrong;
    const auto count = [&](column& c) { ++c.all, c.covered += ok; };
    if (forms[n].at_75) count(columns[0]);
    if (forms[n].at_90) count(columns[1]);
    if (!forms[n].at_75 && !forms[n].at_90) count(columns[2]);
  }
  bool enough = true;
  for (const auto& c : columns) {
    if (c.all == 0) continue;
    const double percent = 100.0 * static_cast<double>(c.covered) / static_cast<double>(c.all);
    std::printf("%s: %zu of %zu forms (%.1f %%)\n", c.name, c.covered, c.all, percent);
    enough = enough && percent >= o.least;
  }
  if (wrong) std::printf("FAIL: %zu forms gave wrong results\n", wrong);
  if (!enough) std::printf("FAIL: less than %.0f %% covered\n", o.least);
  return wrong || !enough ? 1 : 0;
}

int write_record(const std::vector<outcome>& results, const std::string& device_name, const options& o) {
  std::ofstream file(o.record);
  file << "# Recorded by ptx_conformance --record on " << device_name << ".\n";
  for (const auto& r : results) {
    if (r.what == verdict::unknown || r.text.empty()) continue;
    file << r.text.substr(0, r.text.find_last_not_of(" \t") + 1) << "\n";
  }
  return file.good() ? 0 : 1;
}

int write_kernels(const options& o) {
  for (const auto& f : read_forms(o)) {
    const auto k = kernel_of(form(f.name));
    if (!k) continue;
    std::string name = f.name;
    for (char& c : name) c = c == ':' ? '_' : c;
    std::ofstream(o.write + "/" + name + ".ptx") << text_of(*k);
  }
  return 0;
}

int print_values(const options& o) {
  device d;
  std::istringstream names(o.values);
  for (std::string name; std::getline(names, name, ',');) {
    const auto k = kernel_of(form(name));
    if (!k) return 1;
    const run_result r = d.run(*k);
    std::printf("%s %s\n", name.c_str(), r.failure.c_str());
    for (std::size_t t = 0; t < r.threads && r.failure.empty(); ++t)
      std::printf("%s\n", thread_text(*k, r, t).c_str());
  }
  return 0;
}

options parse(int count, char** values) {
  options o;
  for (int n = 1; n < count; ++n) {
    const std::string flag = values[n];
    const auto value = [&] { return n + 1 < count ? values[++n] : ""; };
    if (flag == "--forms")
      o.forms = value();
    else if (flag == "--record")
      o.record = value();
    else if (flag == "--compare")
      o.compare = value();
    else if (flag == "--least")
      o.least = std::atof(value());
    else if (flag == "--write")
      o.write = value();
    else if (flag == "--print")
      o.print = value();
    else if (flag == "--values")
      o.values = value();
    else if (flag == "--only")
      o.only = value();
    else if (flag == "--serve")
      o.serve = std::atol(value());
    else if (flag == "--faults")
      o.faults = true;
    else if (flag == "--fault")
      o.fault = value();
    else
      std::fprintf(stderr, "unknown flag %s\n", flag.c_str()), std::exit(2);
  }
  return o;
}

}  // namespace
}  // namespace conformance

int main(int count, char** values) {
  using namespace conformance;
  const options o = parse(count, values);
  if (!o.print.empty()) {
    const auto k = kernel_of(form(o.print));
    if (k) std::fputs(text_of(*k).c_str(), stdout);
    return k ? 0 : 1;
  }
  if (!o.fault.empty()) return run_fault(o.fault);
  if (!o.values.empty()) return print_values(o);
  if (o.faults) return run_faults(o.record, o.compare);
  if (!o.write.empty()) return write_kernels(o);
  if (o.serve >= 0) return serve(o);
  const auto forms = read_forms(o);
  std::vector<outcome> results(forms.size());
  const std::string name = run_all(values, results);
  std::printf("device: %s\n", name.c_str());
  if (!o.record.empty() && write_record(results, name, o) != 0) return 1;
  return report(forms, results, o);
}
