#include "mcp.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "assay/ask/verbs/faults.h"
#include "assay/ask/verbs/request.h"
#include "assay/base/progress.h"
#include "json_lines.h"

namespace assay {
namespace {

using Message = nlohmann::ordered_json;

/// Versions of the protocol whose tools are those of this server, the newest first.
constexpr const char* protocols[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
constexpr int parse_error = -32700, invalid_request = -32600, unknown_method = -32601, invalid_params = -32602;

Message error_reply(const Message& id, int code, const std::string& what) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", what}}}};
}

/// A text of an object; empty where there is none.
std::string text_of(const Message& object, const char* key) {
  return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}

Message reply(const Message& id, Message result) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}

Message initialized(const Message& params) {
  const std::string asked = text_of(params, "protocolVersion");
  const bool is_known = std::find(std::begin(protocols), std::end(protocols), asked) != std::end(protocols);
  return {
      {"protocolVersion", is_known ? asked : protocols[0]},
      {"capabilities", {{"tools", Message::object()}}},
      {"serverInfo", {{"name", "assay"}, {"version", about().version}}},
      {"instructions",
       "Predicts how long training and serving of transformers take on clusters of TPUs and GPUs, what limits them, "
       "what they cost, and which parallelism is best. Numbers come with intervals; explain=true derives them."}};
}

/// The arguments of a command as its schema describes them, and how the answer is laid out.
Message input_schema(const std::string& verb) {
  const Message all = Message::parse(schema(verb).json);
  const Message& request = all["$defs"][verb + ".request"]["properties"];
  Message arguments = request.contains("arguments") ? request["arguments"] : Message{{"type", "object"}};
  arguments["properties"]["answer"] = {{"enum", {"screen", "json"}},
                                       {"description", "one screen of text (default), or all results as JSON"}};
  return arguments;
}

Message tools() {
  Message list = Message::array();
  for (const verbs::VerbSpec& verb : verbs::verbs())
    list.push_back({{"name", verb.name},
                    {"description", verb.summary + ". " + verb.description},
                    {"inputSchema", input_schema(verb.name)}});
  return {{"tools", std::move(list)}};
}

bool is_tool(const std::string& name) {
  const auto all = verbs::verbs();
  return std::any_of(all.begin(), all.end(), [&](const verbs::VerbSpec& verb) { return verb.name == name; });
}

Message called(const Engine& engine, const std::string& name, Message arguments) {
  const bool wants_json = text_of(arguments, "answer") == "json";
  arguments.erase("answer");
  const Message request{{"verb", name}, {"arguments", std::move(arguments)}};
  Answer answer = engine.answer(request.dump(), wants_json ? AnswerLayout::one_line : AnswerLayout::screen);
  save_files(answer);
  // What does not fit is an answer, too.
  const bool is_answer = answer.status == 0 || answer.status == static_cast<int>(report::Outcome::infeasible) ||
                         answer.status == static_cast<int>(report::Outcome::check_failed);
  return {{"content", {{{"type", "text"}, {"text", answer.json}}}}, {"isError", !is_answer}};
}

/// The answer to a message; null to a notification.
Message answered(const Engine& engine, const Message& message) {
  const std::string method = message.is_object() ? text_of(message, "method") : "";
  if (method.empty())
    return error_reply(nullptr, invalid_request, "a message is an object with jsonrpc, id, method and params");
  if (!message.contains("id")) return nullptr;
  const Message& id = message["id"];
  const Message params =
      message.contains("params") && message["params"].is_object() ? message["params"] : Message::object();
  if (method == "initialize") return reply(id, initialized(params));
  if (method == "ping") return reply(id, Message::object());
  if (method == "tools/list") return reply(id, tools());
  if (method != "tools/call") return error_reply(id, unknown_method, "unknown method " + method);
  const Message arguments = params.contains("arguments") ? params["arguments"] : Message::object();
  const std::string name = text_of(params, "name");
  if (!is_tool(name)) return error_reply(id, invalid_params, "unknown tool; tools/list names them");
  if (!arguments.is_object()) return error_reply(id, invalid_params, "arguments is an object: names and values");
  return reply(id, called(engine, name, arguments));
}

}  // namespace

int serve_tools(Reach reach) {
  const Engine engine(std::move(reach));
  while (const auto line = next_line()) {
    if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
    const Message message = Message::parse(*line, nullptr, false);
    const Message out =
        message.is_discarded() ? error_reply(nullptr, parse_error, "the line is no JSON") : answered(engine, message);
    if (out.is_null()) continue;
    const std::string text = out.dump(-1, ' ', false, Message::error_handler_t::replace) + "\n";
    if (std::fputs(text.c_str(), stdout) == EOF || std::fflush(stdout) != 0) return verbs::exit_input;
    if (progress.is_stopped()) return verbs::exit_interrupted;
  }
  return 0;
}

}  // namespace assay
