// SPDX-License-Identifier: Apache-2.0
#include "document.hpp"

#include <algorithm>
#include <optional>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>

namespace hpcai::config {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Throws for directives, because yaml-cpp ignores unknown directives.
void check_directives(std::string_view yaml, const Origin& origin) {
    for (Position position; !yaml.empty(); ++position.line) {
        require(!yaml.starts_with('%'), ExitCode::usage,
                "{}: expected sections of keys, got a directive (%)", origin.at(position));
        const auto end = yaml.find('\n');
        yaml.remove_prefix(end == std::string_view::npos ? yaml.size() : end + 1);
    }
}

Position position_of(const YAML::Mark& mark) {
    return {mark.line + 1, mark.column + 1};
}

/// Returns a hint if the last line with text before `line` has no colon, or only colons without a
/// blank after them; else an empty string.
std::string missing_colon(const std::string& yaml, int line) {
    std::istringstream lines(yaml);
    std::string text, hint;
    for (int number = 1; number < line && std::getline(lines, text); ++number) {
        text.resize(std::min(text.find('#'), text.size()));
        if (text.find_first_not_of(" \r") == text.npos) continue;
        text.resize(text.find_last_not_of(" \r") + 1);
        const bool has_colon = text.find(':') != text.npos;
        const bool is_key = text.ends_with(':') || text.find(": ") != text.npos;
        hint = is_key ? ""
                      : fmt::format("; line {} has no {}", number,
                                    has_colon ? "blank after its colon" : "colon");
    }
    return hint;
}

/// Builds the tree from events, which unlike yaml-cpp's nodes show duplicates and have no cycles.
class TreeBuilder final : public YAML::EventHandler {
public:
    /// `yaml` must outlive the builder.
    TreeBuilder(std::string_view yaml, const Origin& origin, std::string path)
        : yaml_(yaml), origin_(origin), path_(std::move(path)) {}

    Node take_root() { return std::move(root_); }

    void OnDocumentStart(const YAML::Mark& mark) override {
        require(!has_document_, ExitCode::usage, "{}: expected one YAML document, got a second one",
                origin_.at(position_of(mark)));
        has_document_ = true;
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        check(mark, "?", anchor);
        add({.kind = NodeKind::null, .position = position_of(mark)});
    }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
        fail(mark, "a plain value", "an alias (*)");
    }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        check(mark, tag, anchor);
        check_one_line(mark, tag == "!", value);
        add({.kind = NodeKind::scalar,
             .position = position_of(mark),
             .text = value,
             .quoted = tag == "!"});
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        check(mark, tag, anchor);
        open(mark, NodeKind::list);
    }
    void OnSequenceEnd() override { close(); }

    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        check(mark, tag, anchor);
        open(mark, NodeKind::mapping);
    }
    void OnMapEnd() override { close(); }

private:
    struct Frame {
        Node node;
        std::optional<Node> key;  // mapping: the key whose value follows
    };

    std::string where(Position position, const std::string& name = "") const {
        std::string path = path_;
        const auto extend = [&path](const std::string& part) {
            if (!path.empty() && !part.empty()) path += '.';
            path += message_text(part);
        };
        for (const Frame& frame : stack_) {
            if (frame.key) extend(frame.key->text);
        }
        extend(name);
        return origin_.at(position) + ": " + (path.empty() ? "" : path + ": ");
    }

    [[noreturn]] void fail(const YAML::Mark& mark, const char* expected, const char* got) const {
        throw Error(ExitCode::usage,
                    fmt::format("{}expected {}, got {}", where(position_of(mark)), expected, got));
    }

    void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
        if (anchor != YAML::NullAnchor) fail(mark, "a plain value", "an anchor (&)");
        if (!tag.empty() && tag != "?" && tag != "!") {
            fail(mark, "a plain value", ("a tag (" + tag + ")").c_str());
        }
    }

    /// yaml-cpp marks strings in quotes and blocks with the tag "!". It accepts a string without a
    /// closing quote, which then includes the rest of the file.
    void check_one_line(const YAML::Mark& mark, bool in_quotes_or_block,
                        const std::string& value) const {
        const std::string_view rest = yaml_.substr(std::min<std::size_t>(mark.pos, yaml_.size()));
        if (!in_quotes_or_block) {
            if (!rest.starts_with(value))
                fail(mark, "a value on one line",
                     "several lines; check the indentation of the next line");
            return;
        }
        const char quote = rest.empty() ? ' ' : rest.front();
        if (quote != '"' && quote != '\'') {
            fail(mark, "a value on one line", "a block of text or a tag");
        }
        if (!ends_on_its_line(rest.substr(1), quote)) {
            fail(mark, "a string on one line", "a string without a closing quote");
        }
    }

    static bool ends_on_its_line(std::string_view rest, char quote) {
        for (std::size_t i = 0; i < rest.size() && rest[i] != '\n'; ++i) {
            const bool doubled = quote == '\'' && rest.substr(i, 2) == "''";
            if (rest[i] == quote && !doubled) return true;
            if (doubled || (quote == '"' && rest[i] == '\\')) ++i;
        }
        return false;
    }

    bool expects_key() const {
        return !stack_.empty() && stack_.back().node.kind == NodeKind::mapping &&
               !stack_.back().key;
    }

    void open(const YAML::Mark& mark, NodeKind kind) {
        if (expects_key()) {
            fail(mark, "the name of a key",
                 "a list or a mapping, perhaps without its closing bracket");
        }
        if (stack_.size() >= kMaxDepth) {
            fail(mark, "sections of keys with plain values", "deeper nesting");
        }
        stack_.push_back({{.kind = kind, .position = position_of(mark)}, std::nullopt});
    }

    void close() {
        Node node = std::move(stack_.back().node);
        stack_.pop_back();
        add(std::move(node));
    }

    void add(Node node) {
        if (stack_.empty()) {
            root_ = std::move(node);
        } else if (expects_key()) {
            set_key(std::move(node));
        } else if (stack_.back().node.kind == NodeKind::list) {
            stack_.back().node.items.push_back(std::move(node));
        } else {
            Frame& frame = stack_.back();
            if (node.kind == NodeKind::null) node.position = frame.key->position;
            frame.node.entries.push_back(
                {std::move(frame.key->text), frame.key->position, std::move(node)});
            frame.key.reset();
        }
    }

    void set_key(Node name) {
        const std::string at = where(name.position, name.text);
        require(name.kind == NodeKind::scalar, ExitCode::usage,
                "{}expected the name of a key, got nothing", at);
        require(name.text != "<<", ExitCode::usage,
                "{}expected the name of a key, got '<<' (merge keys are not allowed)", at);
        for (const Entry& entry : stack_.back().node.entries) {
            require(entry.name != name.text, ExitCode::usage,
                    "{}expected each key once, got it again; the first is on line {}", at,
                    entry.position.line);
        }
        // The limit bounds the time of the search above; real files have a few dozen keys.
        require(stack_.back().node.entries.size() < 256, ExitCode::usage,
                "{}expected at most 256 keys, got more", at);
        stack_.back().key = std::move(name);
    }

    std::string_view yaml_;
    const Origin& origin_;
    std::string path_;
    std::vector<Frame> stack_;
    Node root_;
    bool has_document_ = false;
};

}  // namespace

std::string Origin::at(Position position) const {
    return is_file ? fmt::format("{}:{}:{}", name, position.line, position.column) : name;
}

void check_characters(std::string_view text, const Origin& origin) {
    for (Position position; !text.empty();) {
        const std::size_t bytes = utf8_character_bytes(text);
        require(bytes > 0, ExitCode::usage, "{}: expected UTF-8 text, got the byte 0x{:02x}",
                origin.at(position), static_cast<unsigned char>(text[0]));
        require(text[0] != '\t', ExitCode::usage, "{}: expected spaces, got a tab",
                origin.at(position));
        const bool is_line_end = text.starts_with('\n') || text.starts_with("\r\n");
        require(!is_control(text.substr(0, bytes)) || is_line_end, ExitCode::usage,
                "{}: expected text, got the control character {}", origin.at(position),
                in_quotes(text.substr(0, bytes)));
        position.column += static_cast<int>(bytes);
        if (text[0] == '\n') position = {position.line + 1, 1};
        text.remove_prefix(bytes);
    }
}

std::string message_text(std::string_view text) {
    constexpr std::size_t kMaxBytes = 64;
    std::string result;
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t bytes = utf8_character_bytes(text.substr(i));
        const std::string_view next = text.substr(i, std::max<std::size_t>(bytes, 1));
        i += next.size();
        if (i > kMaxBytes) return result + "...";
        if (bytes > 0 && !is_control(next)) {
            result += next;
            continue;
        }
        for (const char byte : next) {
            result += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
        }
    }
    return result;
}

std::string in_quotes(std::string_view text) {
    return fmt::format("'{}'", message_text(text));
}

Node parse_document(const std::string& yaml, const Origin& origin, const std::string& path) {
    check_characters(yaml, origin);
    check_directives(yaml, origin);
    const std::string text = yaml.starts_with(kByteOrderMark) ? yaml.substr(3) : yaml;
    std::istringstream stream(text);
    TreeBuilder builder(text, origin, path);
    try {
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
    } catch (const YAML::Exception& error) {
        const Position position = error.mark.is_null() ? Position{} : position_of(error.mark);
        const bool is_indentation = error.msg == YAML::ErrorMsg::END_OF_MAP;
        const bool is_colon = is_indentation || error.msg == YAML::ErrorMsg::MAP_VALUE;
        throw Error(
            ExitCode::usage,
            fmt::format("{}: {}expected YAML, got an error: {}{}{}", origin.at(position),
                        path.empty() ? "" : path + ": ", printable(error.msg),
                        is_indentation ? "; check the indentation" : "",
                        is_colon ? missing_colon(text, position.line + is_indentation) : ""));
    }
    return builder.take_root();
}

}  // namespace hpcai::config
