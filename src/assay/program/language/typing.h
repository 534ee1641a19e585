// Turns what is written into values. Used only by typing.cpp and calls.cpp.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "assay/program/language/graph.h"

namespace assay::language {

/// The dimensions that the line wants its value to have, by number; nothing: not known.
using Wanted = std::optional<std::vector<int>>;

class Typing {
 public:
  Typing(const Source& source, const Syntax& syntax, Reading reading);

  Result<Graph> run();

 private:
  // --- declarations and statements, typing.cpp
  Result<void> declare();
  Result<void> run_statements(const std::vector<Statement>& statements);
  Result<void> run_statement(const Statement& statement);
  Result<void> add_input(const Statement& statement);
  Result<void> assign(const Statement& statement);
  Result<void> expect(const Statement& statement);
  Result<void> run_loop(const Statement& statement);
  Result<void> define(const Statement& statement);
  Result<void> add_result(const WrittenTensor& target);
  Result<void> add_loss(const Statement& statement);
  /// Gradients that later lines use: dNAME of every input that the tensor depends on.
  Result<void> take_gradients(const Statement& statement);
  Result<void> finish();
  /// Drops what neither a result nor a gradient depends on, such as what the last round of a loop sends. Inputs stay.
  void drop_unused();
  Result<Dims> dims_of(const WrittenTensor& tensor) const;
  Result<program::Sharding> sharding_of(const WrittenTensor& tensor, const Dims& dims, bool dims_are_local) const;
  Result<program::AxisList> axes_of(const Word& word, program::AxisSet& used) const;
  Result<int> dim_named(const Word& word) const;
  Result<void> check_fill(Fill& fill, const Dims& dims, const WrittenTensor& target) const;
  bool is_manual() const { return graph_.mode == Mode::manual; }

  // --- expressions, expressions.cpp
  Result<int> value_of(const Expression& expression, const Wanted& wanted);
  Result<int> named(const Expression& name);
  Result<int> operation(const Expression& expression, const Wanted& wanted);
  Result<int> product(const Expression& expression, const Wanted& wanted);
  /// The factors of a product of any number of tensors, in order.
  void collect_factors(const Expression& expression, std::vector<const Expression*>& out) const;
  Result<int> product_of(std::size_t at, int left, int right, const Wanted& wanted);
  /// A function of elements; operands may lack dimensions of the result.
  Result<int> mapped(std::size_t at, program::Function function, std::vector<int> in, const Wanted& wanted);
  Result<int> add(Value value);
  int number(double value, std::size_t at);
  bool is_number(int id) const { return graph_.value(id).given == Value::Given::number; }
  std::string shape_text(int id) const;
  std::string dim_name(int id) const { return graph_.dim_names[static_cast<std::size_t>(id)]; }

  // --- functions, calls.cpp
  struct Functions;
  using Handler = Result<int> (Typing::*)(const Expression&, const Wanted&);
  Result<int> call(const Expression& expression, const Wanted& wanted);
  bool is_function(std::string_view name) const;
  /// What a function of the program returns, its lines written out.
  Result<int> call_own(const Expression& call, std::size_t number, const Wanted& wanted);
  Result<int> map_call(const Expression& call, const Wanted& wanted, program::Function function);
  Result<int> reduce_call(const Expression& call, const Wanted& wanted);
  Result<int> mean_call(const Expression& call, const Wanted& wanted);
  Result<int> softmax_call(const Expression& call, const Wanted& wanted);
  Result<int> gather_call(const Expression& call, const Wanted& wanted);
  Result<int> rename_call(const Expression& call, const Wanted& wanted);
  Result<int> iota_call(const Expression& call, const Wanted& wanted);
  Result<int> part_call(const Expression& call, const Wanted& wanted);
  Result<int> axis_index_call(const Expression& call, const Wanted& wanted);
  Result<int> axis_size_call(const Expression& call, const Wanted& wanted);
  Result<int> psum_call(const Expression& call, const Wanted& wanted);
  Result<int> pmean_call(const Expression& call, const Wanted& wanted);
  /// Collectives that make a dimension smaller, one larger, or both.
  Result<int> resized_call(const Expression& call, const Wanted& wanted);
  Result<int> ragged_call(const Expression& call, const Wanted& wanted);
  Result<int> ppermute_call(const Expression& call, const Wanted& wanted);
  // --- composed of others, composed.cpp
  Result<int> reshape_call(const Expression& call, const Wanted& wanted);
  Result<int> cumsum_call(const Expression& call, const Wanted& wanted);
  Result<int> argmax_call(const Expression& call, const Wanted& wanted);
  Result<int> top_call(const Expression& call, const Wanted& wanted);
  Result<int> sort_call(const Expression& call, const Wanted& wanted);
  Result<int> pmax_call(const Expression& call, const Wanted& wanted);
  /// A second name for a dimension, which pairs of its elements need.
  int beside(const Dim& dim);
  Result<int> numbered(std::size_t at, const Dim& dim);
  Result<int> over(const Expression& call, program::Op op, int x, int dim);
  Result<int> viewed(const Expression& call, int x, Dims dims);
  Result<int> place_of_largest(const Expression& call, int x, const Dim& dim);

  Value made_by(const Expression& call, program::Op op, std::vector<int> in) const;
  Result<void> takes(const Expression& call, std::size_t least, std::size_t most, std::string_view form) const;
  Result<int> operand_dim(const Expression& name, int value) const;
  Result<program::AxisList> operand_axes(const Expression& name) const;
  Result<std::int64_t> whole_operand(const Expression& operand, std::int64_t least, std::int64_t most) const;
  /// A value that a collective makes of another one.
  Result<int> called(const Expression& call, int operand, Call how, Dims dims);

  const Source& source_;
  const Syntax& syntax_;
  Reading reading_;
  Graph graph_;
  std::vector<std::int64_t> sizes_;  ///< of dimensions, as declared
  std::map<std::string, int, std::less<>> names_;
  std::map<std::string, int, std::less<>> expected_;  ///< by name of the result
  std::map<std::string, int, std::less<>> inputs_;
  std::vector<const Statement*> functions_;  ///< of the program, as far as the current line sees them
  std::string target_;                       ///< of the current line
  std::int64_t rounds_ = 0;
  bool takes_gradients_ = false;  ///< before the program ends
};

}  // namespace assay::language
