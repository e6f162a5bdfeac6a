// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// A strict reader of the HTML that `report` writes; it rejects some valid HTML.
namespace hpcai::report {

struct Tag {
    std::string name;
    std::vector<std::pair<std::string, std::string>> attributes;
    std::size_t depth = 0;
};

struct ReadPage {
    std::vector<Tag> tags;
    std::string text;  // visible text, with a blank between elements
    std::string problem;
};

/// Returns the characters of an HTML entity; empty for an unknown entity.
inline std::string letter_of(const std::string& entity) {
    static const std::vector<std::pair<std::string, std::string>> kEntities{
        {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}};
    for (const auto& [name, letter] : kEntities) {
        if (name == entity) return letter;
    }
    return "";
}

class PageReader {
public:
    explicit PageReader(const std::string& html) : html_(html) {}

    ReadPage read() {
        const std::string start = "<!DOCTYPE html>\n";
        if (!html_.starts_with(start)) fail("no doctype");
        at_ = start.size();
        while (at_ < html_.size() && page_.problem.empty()) {
            html_[at_] == '<' ? read_tag() : read_text();
        }
        if (!open_.empty()) fail("never closed: " + open_.back());
        return page_;
    }

private:
    void fail(const std::string& what) {
        if (page_.problem.empty()) {
            page_.problem = what + " near: " + html_.substr(at_ > 60 ? at_ - 60 : 0, 120);
        }
    }

    void read_text() {
        const std::size_t end = std::min(html_.find('<', at_), html_.size());
        const bool is_style = !open_.empty() && open_.back() == "style";
        std::string text = unescaped(html_.substr(at_, end - at_), is_style);
        if (!is_style) page_.text += text;
        at_ = end;
    }

    std::string unescaped(const std::string& raw, bool is_style) {
        std::string text;
        for (std::size_t index = 0; index < raw.size(); ++index) {
            if (raw[index] == '&' && !is_style) {
                const std::size_t end = raw.find(';', index);
                const std::string letter =
                    end == std::string::npos ? "" : letter_of(raw.substr(index, end + 1 - index));
                if (letter.empty()) fail("a bare &");
                text += letter;
                index = letter.empty() ? index : end;
            } else if (static_cast<unsigned char>(raw[index]) < 32 && raw[index] != '\n' &&
                       raw[index] != '\t') {
                fail("a control character");
            } else {
                text += raw[index];
            }
        }
        return text;
    }

    std::string word() {
        const std::size_t begin = at_;
        while (at_ < html_.size() &&
               (std::isalnum(static_cast<unsigned char>(html_[at_])) != 0 || html_[at_] == '-')) {
            ++at_;
        }
        if (at_ == begin) fail("no name");
        return html_.substr(begin, at_ - begin);
    }

    void close() {
        at_ += 2;
        const std::string name = word();
        if (open_.empty() || open_.back() != name) return fail("closes " + name);
        open_.pop_back();
        if (html_[at_++] != '>') fail("a closing tag with more");
        page_.text += ' ';
    }

    void read_tag() {
        if (html_.compare(at_, 2, "</") == 0) return close();
        ++at_;
        Tag tag{word(), {}, open_.size()};
        while (page_.problem.empty() && html_[at_] == ' ') {
            ++at_;
            const std::string name = word();
            if (html_.compare(at_, 2, "=\"") != 0) return fail("an attribute without quotes");
            const std::size_t end = html_.find('"', at_ + 2);
            if (end == std::string::npos) return fail("quotes without an end");
            tag.attributes.emplace_back(name,
                                        unescaped(html_.substr(at_ + 2, end - at_ - 2), false));
            at_ = end + 1;
        }
        const bool closes_itself = html_.compare(at_, 2, "/>") == 0;
        at_ += closes_itself ? 2 : 1;
        if (html_[at_ - 1] != '>') return fail("a tag without an end");
        const bool is_void = tag.name == "meta" || tag.name == "link";
        if (!closes_itself && !is_void) open_.push_back(tag.name);
        page_.tags.push_back(std::move(tag));
        page_.text += ' ';
    }

    const std::string& html_;
    std::size_t at_ = 0;
    std::vector<std::string> open_;
    ReadPage page_;
};

/// Returns the page's tags and text. Fails the test if the page is not well formed, has a script,
/// loads an external resource, shows a non-finite number, or links to a missing or external target.
inline ReadPage read_page(const std::string& html) {
    const ReadPage page = PageReader(html).read();
    EXPECT_EQ(page.problem, "");
    const std::set<std::string> forbidden{"script", "iframe", "object", "embed", "img",
                                          "form",   "input",  "base",   "image"};
    std::set<std::string> ids, anchors;
    for (const Tag& tag : page.tags) {
        EXPECT_FALSE(forbidden.contains(tag.name)) << tag.name;
        for (const auto& [name, value] : tag.attributes) {
            EXPECT_FALSE(name.starts_with("on") || name == "src") << tag.name << " " << name;
            if (name == "href" && tag.name == "a") {
                EXPECT_EQ(value.find_first_of(":\\"), std::string::npos) << value;
                EXPECT_FALSE(value.starts_with("/")) << value;
                if (value.starts_with("#")) anchors.insert(value.substr(1));
            } else if (name == "href") {
                EXPECT_EQ(value, "data:,");
            }
            if (name == "id") {
                EXPECT_TRUE(ids.insert(value).second) << value;
            }
            if (name == "d" || name == "style" || name == "x" || name == "width") {
                EXPECT_EQ(value.find("nan"), std::string::npos) << value;
                EXPECT_EQ(value.find("inf"), std::string::npos) << value;
            }
        }
    }
    for (const std::string& anchor : anchors) EXPECT_TRUE(ids.contains(anchor)) << anchor;
    EXPECT_EQ(html.find("url("), std::string::npos);
    EXPECT_EQ(html.find("@import"), std::string::npos);
    return page;
}

/// Returns `text` with one blank instead of each run of blanks and line breaks.
inline std::string squeezed(const std::string& text) {
    std::string result;
    for (const char letter : text) {
        const bool is_blank = letter == ' ' || letter == '\n';
        if (!is_blank) result += letter;
        if (is_blank && !result.empty() && result.back() != ' ') result += ' ';
    }
    return result;
}

}  // namespace hpcai::report
