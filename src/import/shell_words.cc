#include "import/shell_words.h"

#include "base/format.h"
#include "base/text.h"

namespace capgate::imports {
namespace {

constexpr std::string_view active = "|&;<>()";

class Cutter {
 public:
  explicit Cutter(std::string_view text) : text_(text) {}

  Result<std::vector<Word>> cut() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_space(c)) {
        end_word();
        ++at_;
      } else if (c == '#' && !in_word_) {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        at_ += 2;
      } else {
        TRY(take(c));
      }
    }
    end_word();
    return std::move(words_);
  }

 private:
  std::unexpected<Diagnostic> refuse(std::size_t from, std::string message,
                                     std::string help) const {
    return fail(Code::import_shape, Span::at(from, text_.size()), std::move(message),
                std::move(help));
  }

  std::unexpected<Diagnostic> refuse_expansion() const {
    return fail(Code::import_shape, Span::at(at_, at_ + 1),
                format("a shell would act upon {}", quoted(text_.substr(at_, 1))),
                "write what it stands for, or put it into single quotes");
  }

  void start_word() {
    if (!in_word_) begin_ = at_;
    in_word_ = true;
  }

  void end_word() {
    if (in_word_) words_.push_back({.text = std::move(word_), .where = Span::at(begin_, at_)});
    word_.clear();
    in_word_ = false;
  }

  Result<void> take(char c) {
    if (c == '$' || c == '`' || active.contains(c)) return refuse_expansion();
    start_word();
    if (c == '\'') return single();
    if (c == '"') return twofold();
    if (c == '\\') {
      if (at_ + 1 == text_.size())
        return refuse(at_, "a backslash is the last character", "remove it");
      ++at_;
    }
    word_ += text_[at_++];
    return {};
  }

  Result<void> single() {
    const std::size_t close = text_.find('\'', at_ + 1);
    if (close == std::string_view::npos) return refuse(at_, "a quote is not closed", "add '");
    word_ += text_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    return {};
  }

  Result<void> twofold() {
    const std::size_t open = at_++;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_];
      if (c == '$' || c == '`') return refuse_expansion();
      if (c == '\\' && at_ + 1 < text_.size() &&
          std::string_view("\\\"$`\n").contains(text_[at_ + 1])) {
        ++at_;
        if (text_[at_] != '\n') word_ += text_[at_];
        ++at_;
        continue;
      }
      word_ += text_[at_++];
    }
    if (at_ == text_.size()) return refuse(open, "a quote is not closed", "add \"");
    ++at_;
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;
  bool in_word_ = false;
  std::string word_;
  std::vector<Word> words_;
};

}  // namespace

Result<std::vector<Word>> cut_words(std::string_view text) { return Cutter(text).cut(); }

}  // namespace capgate::imports
