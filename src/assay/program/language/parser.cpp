#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/assign.h"
#include "assay/base/text.h"
#include "assay/program/language/lexer.h"
#include "assay/program/language/syntax.h"

namespace assay::language {
namespace {

constexpr int deepest = 48;                  // of brackets and loops
constexpr std::int64_t most_size = 1 << 24;  // of a dimension or an axis
constexpr std::string_view statement_words[] = {"def",    "mesh", "dims",   "mode",      "dtype", "input",
                                                "repeat", "for",  "result", "gradients", "expect"};

class Parser {
 public:
  Parser(const Source& source, std::vector<Token> tokens) : source_(source), tokens_(std::move(tokens)) {}

  Result<Syntax> run() {
    ASSAY_CHECK(statements(syntax_.statements, false));
    return std::move(syntax_);
  }

 private:
  // --- tokens
  const Token& here() const { return tokens_[next_]; }
  const Token& take() { return here().kind == Token::Kind::end ? here() : tokens_[next_++]; }
  bool accept(std::string_view symbol) {
    if (!here().is(symbol)) return false;
    take();
    return true;
  }
  bool accept_word(std::string_view word) {
    if (!here().is_word(word)) return false;
    take();
    return true;
  }
  std::string shown() const {
    if (here().kind == Token::Kind::end_of_line || here().kind == Token::Kind::end) return "the end of the line";
    return in_quotes(here().text);
  }
  tl::unexpected<Error> wrong(std::string_view expected, std::string hint) const {
    return source_.error(here().at, fmt::format("expected {}, found {}", expected, shown()), std::move(hint));
  }
  Result<void> expect(std::string_view symbol, std::string_view hint) {
    if (accept(symbol)) return {};
    return wrong(fmt::format("\"{}\"", symbol), std::string(hint));
  }
  Result<Word> word(std::string_view what, std::string_view hint) {
    if (here().kind != Token::Kind::word) return wrong(what, std::string(hint));
    const Token& token = take();
    return Word{std::string(token.text), token.at};
  }
  Result<std::int64_t> count(std::string_view hint, std::int64_t least, std::int64_t most) {
    const Token token = here();
    if (token.kind != Token::Kind::number) return wrong("a whole number", std::string(hint));
    if (token.value != std::floor(token.value) || token.value < static_cast<double>(least) ||
        token.value > static_cast<double>(most))
      return source_.error(token.at, fmt::format("{} is not a whole number from {} to {}", token.text, least, most),
                           std::string(hint));
    take();
    return static_cast<std::int64_t>(token.value);
  }
  Result<void> end_of_statement() {
    if (here().kind == Token::Kind::end_of_line || here().kind == Token::Kind::end || here().is("}")) return {};
    return wrong("the end of the line", "one statement a line, or separate them by ;");
  }

  // --- statements
  Result<void> statements(std::vector<Statement>& out, bool in_loop) {
    for (;;) {
      while (here().kind == Token::Kind::end_of_line) take();
      if (here().kind == Token::Kind::end) {
        if (in_loop) return wrong("\"}\"", "a loop ends with }, and a function");
        return {};
      }
      if (in_loop && here().is_word("return")) return {};
      if (here().is("}")) {
        if (in_loop) return {};
        return source_.error(here().at, "\"}\" without a loop that it ends", "remove it");
      }
      ASSAY_CHECK(statement(out, in_loop));
      ASSAY_CHECK(end_of_statement());
    }
  }

  Result<void> statement(std::vector<Statement>& out, bool in_loop) {
    const Token first = here();
    if (first.kind != Token::Kind::word)
      return wrong("a statement", "a line is NAME = ..., input NAME[...], result NAME, mesh, dims, repeat or for");
    const bool assigns = tokens_[next_ + 1].is("=") || tokens_[next_ + 1].is("[") || tokens_[next_ + 1].is("{");
    const auto* known = std::find(std::begin(statement_words), std::end(statement_words), first.text);
    if (known == std::end(statement_words) || (assigns && !first.is_word("for"))) {
      if (!assigns) return unknown_statement(first);
      return assignment(out, Statement::Kind::assign);
    }
    take();
    if (first.text == "repeat" || first.text == "for") return loop(out, first);
    if (first.text == "expect") return assignment(out, Statement::Kind::expect);
    if (in_loop)
      return source_.error(first.at, fmt::format("{} is not allowed in a loop or a function", in_quotes(first.text)),
                           "write it outside");
    if (first.text == "mesh") return sizes(syntax_.mesh, "write mesh X=4, Y=2", 4096);
    if (first.text == "dims") return sizes(syntax_.dims, "write dims B=8, D=16", most_size);
    if (first.text == "mode") return mode();
    if (first.text == "def") return function(out, first);
    if (first.text == "dtype") {
      ASSAY_SET(syntax_.dtype, word("a number format", "e.g. dtype bf16"));
      return {};
    }
    if (first.text == "input") return input(out);
    Statement made;
    made.at = first.at;
    made.kind = first.text == "result" ? Statement::Kind::result : Statement::Kind::gradients;
    if (first.text == "gradients" && !accept_word("of")) return wrong("\"of\"", "write gradients of NAME");
    do {
      ASSAY_SET(made.target, written_tensor());
      out.push_back(made);
    } while (accept(","));
    return {};
  }

  tl::unexpected<Error> unknown_statement(const Token& first) const {
    std::vector<std::string> words(std::begin(statement_words), std::end(statement_words));
    return source_.error(first.at, fmt::format("{} begins no statement, and no = follows it", in_quotes(first.text)),
                         suggestion(first.text, words));
  }

  Result<void> sizes(std::vector<SizedName>& out, std::string_view hint, std::int64_t most) {
    do {
      ASSAY_TRY(name, word("a name", hint));
      for (const SizedName& other : out)
        if (other.name.text == name.text)
          return source_.error(name.at, fmt::format("{} is given twice", in_quotes(name.text)),
                               "each name has one size");
      if (name.text.find('_') != std::string::npos)
        return source_.error(name.at + name.text.find('_'), "names of dimensions and axes have no _",
                             "it separates a dimension from its axes: B_X");
      ASSAY_CHECK(expect("=", hint));
      ASSAY_TRY(size, count(hint, 1, most));
      if (out.size() == 32) return source_.error(name.at, "more than 32 names", "use fewer");
      out.push_back({name, size});
    } while (accept(","));
    return {};
  }

  Result<void> mode() {
    constexpr std::pair<std::string_view, Mode> modes[] = {
        {"auto", Mode::automatic}, {"explicit", Mode::explicit_types}, {"manual", Mode::manual}};
    ASSAY_TRY(given, word("a mode", "auto, explicit or manual"));
    for (const auto& [known, value] : modes)
      if (given.text == known) {
        syntax_.mode = value;
        return {};
      }
    return source_.error(given.at, fmt::format("unknown mode {}", in_quotes(given.text)), "auto, explicit or manual");
  }

  Result<void> input(std::vector<Statement>& out) {
    Statement made;
    made.kind = Statement::Kind::input;
    made.at = here().at;
    ASSAY_SET(made.target, written_tensor());
    made.fill.seed = ++inputs_;
    made.fill.at = here().at;
    if (accept("=")) ASSAY_SET(made.fill, filled(made.fill.seed));
    out.push_back(std::move(made));
    return {};
  }

  Result<Fill> filled(std::uint64_t seed) {
    constexpr std::string_view hint = "random SEED, random SEED below N, iota, a number, or [1, 2, 3]";
    Fill fill;
    fill.seed = seed;
    fill.at = here().at;
    if (accept_word("iota")) {
      fill.kind = Fill::Kind::iota;
    } else if (accept_word("random")) {
      if (here().kind == Token::Kind::number) {
        ASSAY_TRY(given, count(hint, 0, most_size));
        fill.seed = static_cast<std::uint64_t>(given);
      }
      if (accept_word("below")) {
        if (here().kind == Token::Kind::word) {
          ASSAY_SET(fill.below_dim, word("a dimension", hint));
        } else {
          ASSAY_SET(fill.below, count(hint, 1, most_size));
        }
      }
    } else if (here().is("[")) {
      fill.kind = Fill::Kind::literal;
      ASSAY_CHECK(literal(fill.literal, 0));
    } else {
      fill.kind = Fill::Kind::constant;
      ASSAY_SET(fill.constant, signed_number(hint));
    }
    return fill;
  }

  Result<double> signed_number(std::string_view hint) {
    const bool negative = accept("-");
    if (here().kind != Token::Kind::number) return wrong("a value", std::string(hint));
    const double value = take().value;
    return negative ? -value : value;
  }

  Result<void> literal(std::vector<double>& out, int depth) {
    if (depth == deepest) return source_.error(here().at, "brackets are nested too deeply", "");
    ASSAY_CHECK(expect("[", "write [1, 2, 3]"));
    do {
      if (here().is("[")) {
        ASSAY_CHECK(literal(out, depth + 1));
      } else {
        ASSAY_TRY(value, signed_number("write [1, 2, 3] or [[1, 2], [3, 4]]"));
        out.push_back(value);
      }
    } while (accept(","));
    return expect("]", "write [1, 2, 3]");
  }

  Result<void> assignment(std::vector<Statement>& out, Statement::Kind kind) {
    Statement made;
    made.kind = kind;
    made.at = here().at;
    ASSAY_SET(made.target, written_tensor());
    ASSAY_CHECK(expect("=", "write NAME = EXPRESSION"));
    ASSAY_SET(made.value, expression(0));
    out.push_back(std::move(made));
    return {};
  }

  Result<void> loop(std::vector<Statement>& out, const Token& first) {
    Statement made;
    made.kind = Statement::Kind::loop;
    made.at = first.at;
    if (++depth_ > deepest) return source_.error(first.at, "loops are nested too deeply", "");
    if (first.text == "for") {
      ASSAY_SET(made.counter, word("a name", "write for i in 0..4 { ... }"));
      if (!accept_word("in")) return wrong("\"in\"", "write for i in 0..4 { ... }");
      ASSAY_TRY(from, count("write for i in 0..4 { ... }", 0, 4096));
      made.first = from;
      ASSAY_CHECK(expect("..", "write for i in 0..4 { ... }: from 0 to 3"));
    }
    ASSAY_SET(made.last, count("write repeat 4 { ... }", 0, 4096));
    ASSAY_CHECK(expect("{", "the body of a loop stands in { }"));
    ASSAY_CHECK(statements(made.body, true));
    if (here().is_word("return"))
      return source_.error(here().at, "a loop returns nothing", "return stands in a function");
    ASSAY_CHECK(expect("}", "a loop ends with }"));
    --depth_;
    out.push_back(std::move(made));
    return {};
  }

  Result<void> function(std::vector<Statement>& out, const Token& first) {
    constexpr std::string_view hint = "write def NAME(x, w) { h = x * w; return gelu(h) }";
    Statement made;
    made.kind = Statement::Kind::function;
    made.at = first.at;
    ASSAY_SET(made.target.name, word("the name of a function", hint));
    ASSAY_CHECK(expect("(", hint));
    while (!here().is(")")) {
      ASSAY_TRY(parameter, word("the name of a tensor", hint));
      made.parameters.push_back(parameter);
      if (!accept(",")) break;
    }
    ASSAY_CHECK(expect(")", hint));
    ASSAY_CHECK(expect("{", hint));
    ASSAY_CHECK(statements(made.body, true));
    if (!accept_word("return")) return wrong("\"return\"", std::string(hint));
    ASSAY_SET(made.value, expression(0));
    while (here().kind == Token::Kind::end_of_line) take();
    ASSAY_CHECK(expect("}", "return is the last line of a function"));
    out.push_back(std::move(made));
    return {};
  }

  // --- tensors
  Result<WrittenTensor> written_tensor() {
    constexpr std::string_view hint = "write NAME[B_X, D]";
    WrittenTensor tensor;
    ASSAY_SET(tensor.name, word("the name of a tensor", hint));
    if (accept("[")) {
      tensor.has_dims = true;
      while (!here().is("]")) {
        ASSAY_TRY(dim, written_dim());
        tensor.dims.push_back(dim);
        if (!accept(",")) break;
      }
      ASSAY_CHECK(expect("]", "dimensions are separated by commas"));
    }
    if (accept("{")) {
      tensor.has_braces = true;
      if (!here().is("}")) {
        ASSAY_TRY(partial, subscripted("U_X", "partial sums are written {U_X}"));
        if (!partial.text.starts_with("U_") || partial.text.size() == 2)
          return source_.error(partial.at, fmt::format("{} is not U_AXES", in_quotes(partial.text)),
                               "partial sums are written {U_X}; {} says there are none");
        tensor.partial = {partial.text.substr(2), partial.at + 2};
      }
      ASSAY_CHECK(expect("}", "partial sums are written {U_X}"));
    }
    return tensor;
  }

  /// A word, and after _ axes with a plus between them: B_dp+fsdp.
  Result<Word> subscripted(std::string_view what, std::string_view hint) {
    ASSAY_TRY(given, word(what, hint));
    while (given.text.find('_') != std::string::npos && accept("+")) {
      ASSAY_TRY(axis, word("an axis", "write B_XY or B_dp+fsdp"));
      given.text += "+" + axis.text;
    }
    return given;
  }

  Result<WrittenDim> written_dim() {
    ASSAY_TRY(given, subscripted("a dimension", "write NAME[B_X, D]"));
    const std::size_t line = given.text.find('_');
    if (line == std::string::npos) return WrittenDim{given, {"", given.at + given.text.size()}};
    WrittenDim dim{{given.text.substr(0, line), given.at}, {given.text.substr(line + 1), given.at + line + 1}};
    if (dim.axes.text.empty()) return source_.error(dim.axes.at, "an axis is missing after _", "write B_X, or B alone");
    return dim;
  }

  // --- expressions: comparisons, sums, products, arrows of renamings
  Result<Expression> expression(int level) {
    constexpr std::string_view operators[][5] = {
        {"<", "<=", ">", ">=", "=="}, {"+", "-", "", "", ""}, {"*", "/", "%", "", ""}};
    if (level == 3) return unary();
    ASSAY_TRY(left, expression(level + 1));
    Expression sum = std::move(left);
    std::size_t length = 0;
    for (;;) {
      const Token token = here();
      const auto* found = token.kind == Token::Kind::symbol
                              ? std::find(std::begin(operators[level]), std::end(operators[level]), token.text)
                              : std::end(operators[level]);
      if (found == std::end(operators[level])) return sum;
      if (++length > 64) return source_.error(token.at, "more than 64 operations in a row", "split the line");
      take();
      ASSAY_TRY(right, expression(level + 1));
      Expression made{Expression::Kind::operation, token.at, std::string(token.text), 0, {}};
      made.operands.push_back(std::move(sum));
      made.operands.push_back(std::move(right));
      sum = std::move(made);
    }
  }

  Result<Expression> unary() {
    const Token token = here();
    if (accept("+")) return unary_inside();
    if (!accept("-")) return primary();
    ASSAY_TRY(inner, unary_inside());
    if (inner.kind == Expression::Kind::number) {
      inner.number = -inner.number;
      return std::move(inner);
    }
    Expression made{Expression::Kind::call, token.at, "negate", 0, {}};
    made.operands.push_back(std::move(inner));
    return made;
  }
  Result<Expression> unary_inside() {
    if (++depth_ > deepest) return source_.error(here().at, "signs are nested too deeply", "");
    auto inner = unary();
    --depth_;
    return inner;
  }

  Result<Expression> primary() {
    const Token token = here();
    if (token.kind == Token::Kind::number) {
      take();
      return Expression{Expression::Kind::number, token.at, std::string(token.text), token.value, {}};
    }
    if (token.kind == Token::Kind::word) {
      take();
      if (!here().is("(")) {
        if (here().is("["))
          return source_.error(here().at, "dimensions stand on the left of =, not at a tensor that is used",
                               fmt::format("write {} alone", token.text));
        return Expression{Expression::Kind::name, token.at, std::string(token.text), 0, {}};
      }
      return call(token);
    }
    if (!accept("(")) return wrong("a value", "a tensor, a number, a function or ( )");
    if (++depth_ > deepest) return source_.error(token.at, "brackets are nested too deeply", "split the line");
    ASSAY_TRY(inner, expression(0));
    --depth_;
    ASSAY_CHECK(expect(")", "a bracket that opens is closed"));
    return std::move(inner);
  }

  Result<Expression> call(const Token& function) {
    Expression made{Expression::Kind::call, function.at, std::string(function.text), 0, {}};
    ASSAY_CHECK(expect("(", ""));
    if (++depth_ > deepest) return source_.error(function.at, "brackets are nested too deeply", "split the line");
    while (!here().is(")")) {
      if (made.operands.size() == 64) return source_.error(here().at, "more than 64 operands", "");
      ASSAY_TRY(operand, expression(0));
      if (const Token arrow = here(); accept("->")) {
        ASSAY_TRY(target, expression(0));
        Expression pair{Expression::Kind::arrow, arrow.at, "->", 0, {}};
        pair.operands.push_back(std::move(operand));
        pair.operands.push_back(std::move(target));
        made.operands.push_back(std::move(pair));
      } else {
        made.operands.push_back(std::move(operand));
      }
      if (!accept(",")) break;
    }
    --depth_;
    ASSAY_CHECK(expect(")", "operands are separated by commas"));
    return made;
  }

  const Source& source_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  int depth_ = 0;
  std::uint64_t inputs_ = 0;
  Syntax syntax_;
};

}  // namespace

Result<Syntax> parse(const Source& source) {
  ASSAY_TRY(tokens, tokens_of(source));
  return Parser(source, std::move(tokens)).run();
}

std::string_view name(Mode mode) {
  constexpr std::string_view names[] = {"auto", "explicit", "manual"};
  return names[static_cast<std::size_t>(mode)];
}

}  // namespace assay::language
