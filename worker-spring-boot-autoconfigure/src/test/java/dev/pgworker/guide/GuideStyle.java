package dev.pgworker.guide;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The rules of plain English for README, guide, Javadoc and messages: words to avoid, and short sentences. */
final class GuideStyle {

    /** The most words of a sentence. A piece of code is one word. */
    static final int MOST_WORDS = 25;

    /**
     * What to avoid, and what to write instead.
     *
     * @param inMessages whether the rule also holds for messages and for Javadoc
     */
    record Rule(String name, Pattern avoid, String better, boolean inMessages) {

        static Rule everywhere(String name, String avoid, String better) {
            return new Rule(name, pattern(avoid), better, true);
        }

        static Rule inProse(String name, String avoid, String better) {
            return new Rule(name, pattern(avoid), better, false);
        }

        private static Pattern pattern(String avoid) {
            return Pattern.compile(avoid, Pattern.CASE_INSENSITIVE | Pattern.UNICODE_CASE);
        }
    }

    static final List<Rule> RULES = List.of(
            Rule.everywhere("startup", "\\b(?:stop|prevent|end)(?:s|ped|ing|ed)? the start\\b", "fail startup"),
            Rule.inProse("told", "\\b(?:is|are|be|been|being|was|were) told\\b", "be notified, be reported, be logged"),
            Rule.inProse("tell", "\\b(?:tells?|telling)\\b", "report, log, show, notify"),
            Rule.inProse("say", "\\b(?:says?|said|saying)\\b", "report, show, name, state, specify"),
            Rule.everywhere(
                    "persons",
                    "\\b(?:some|any|every|no)(?:body|one)(?:'s)?\\b|\\bwhoever\\b",
                    "you, a user, a role, none"),
            Rule.inProse("whose", "\\bof (?:yours|theirs|ours|his|hers)\\b", "your own, their own"),
            Rule.everywhere(
                    "catch up", "\\b(?:make|makes|made|making) up for\\b", "catch up on, run missed executions"),
            Rule.everywhere(
                    "create",
                    "\\b(?:make|makes|made|making) (?:an? |the |new |no )?"
                            + "(?:schedules?|limits?|triggers?|partitions?|index(?:es)?|tables?|jobs?|rows?)\\b(?! due)"
                            + "|\\bmade at run time\\b",
                    "create"),
            Rule.everywhere("stands in", "\\b(?:stand|stands|stood|standing) in\\b", "be in"),
            Rule.everywhere("example", "\\bfor instance\\b", "for example, at the beginning"),
            Rule.everywhere("continue", "\\b(?:go|goes|going|went|gone) on\\b", "continue"),
            Rule.everywhere("no longer", "\\bany ?more\\b|\\blisten(?:s|ing)? no more\\b", "no longer, not ... again"),
            Rule.everywhere(
                    "at most",
                    "\\b\\w+ at (?:the )?(?:most|least)(?=[.,;:)|]|$)",
                    "at most N, at least N, before the noun"),
            Rule.everywhere(
                    "idioms",
                    "\\b(?:amok|in vain|sign of life|hurts?|does not mind|owes?|entails?|mends?|mended"
                            + "|much too|sits? at|as good as|it bears|has to bear|takes? for dead|taken for dead|of use to)\\b",
                    "the plain verb: repair, affect, charge, cause, consider dead"),
            Rule.everywhere("do without", "\\b(?:do|does|did) without\\b", "not need, not have"),
            Rule.everywhere(
                    "listener", "\\bconnections? that listens?\\b|\\blistening connections?\\b", "listener connection"),
            Rule.everywhere(
                    "marketing",
                    "\\b(?:simply|easily|effortless(?:ly)?|seamless(?:ly)?|powerful|robust|blazing|leverages?|please)\\b",
                    "the fact alone"),
            Rule.inProse("riddle", "^(?:What|Who) (?!.*\\?$).*[.]$", "a noun as the subject of the sentence"),
            Rule.inProse(
                    "figures",
                    "\\b\\d[\\d,.]* (?:jobs|statements|inserts)(?:/s\\b| (?:a|per) second\\b)",
                    "a link to performance.md, which has figures with their machine"),
            Rule.everywhere("emoji", "[\\x{2600}-\\x{27BF}\\x{1F300}-\\x{1FAFF}]", "words"));

    /** The names of the rules that hold for comments as well. */
    static final Set<String> IN_COMMENTS = Set.of(
            "startup",
            "told",
            "tell",
            "say",
            "persons",
            "whose",
            "catch up",
            "stands in",
            "example",
            "continue",
            "idioms",
            "listener",
            "marketing",
            "emoji");

    private static final Pattern EMPTY_HEADER =
            Pattern.compile("^(\\|(?:[^\n]*\\|)?[ \t]*\\|[^\n]*)\n\\|-", Pattern.MULTILINE);

    private GuideStyle() {}

    /**
     * Returns what is wrong with a page in Markdown, each with its sentence.
     *
     * @param figures whether the page may have measurements
     */
    static List<String> problemsOfPage(String page, boolean figures) {
        List<String> problems = new ArrayList<>();
        EMPTY_HEADER.matcher(page).results().forEach(header -> problems.add("empty table header: " + header.group(1)));
        for (String sentence : sentences(page)) {
            RULES.stream()
                    .filter(rule -> !figures || !rule.name().equals("figures"))
                    .forEach(rule -> check(rule, sentence, problems));
            checkLength(sentence, problems);
        }
        return problems;
    }

    /** Returns what is wrong with the first sentence of a Javadoc comment. */
    static List<String> problemsOfJavadoc(String comment) {
        String text = comment.replaceAll("\\n\\s*\\* ?", "\n")
                .replaceAll("\\{@\\w+ ([^}]*)}", "X")
                .replaceAll("(?s)\\n\\s*[@<].*", "");
        List<String> problems = new ArrayList<>();
        sentences(text).stream().limit(1).forEach(sentence -> {
            problems.addAll(problemsOfText(sentence));
            checkLength(sentence, problems);
        });
        return problems;
    }

    /** Returns what is wrong with the words of a message. */
    static List<String> problemsOfText(String text) {
        List<String> problems = new ArrayList<>();
        RULES.stream().filter(Rule::inMessages).forEach(rule -> check(rule, text, problems));
        return problems;
    }

    /** Returns what is wrong with a comment in Java or SQL. */
    static List<String> problemsOfComment(String comment) {
        String text = comment.replaceAll("(?m)^\\s*(?:\\*|//|--) ?", "").replaceAll("\\s+", " ");
        List<String> problems = new ArrayList<>();
        RULES.stream().filter(rule -> IN_COMMENTS.contains(rule.name())).forEach(rule -> check(rule, text, problems));
        return problems;
    }

    private static void checkLength(String sentence, List<String> problems) {
        int words = words(sentence);
        if (words > MOST_WORDS) {
            problems.add(words + " words, at most " + MOST_WORDS + ": " + sentence);
        }
    }

    private static void check(Rule rule, String sentence, List<String> problems) {
        Matcher found = rule.avoid().matcher(sentence);
        if (found.find()) {
            problems.add(rule.name() + ": \"" + found.group() + "\"; write " + rule.better() + ": " + sentence);
        }
    }

    private static int words(String sentence) {
        return (int) Pattern.compile("[\\p{L}\\p{N}][^\\s]*")
                .matcher(sentence)
                .results()
                .count();
    }

    /** The sentences of paragraphs, headings, list items and cells of tables, without code, marks and addresses. */
    static List<String> sentences(String page) {
        String text = page.replaceAll("(?s)<!--.*?-->", "")
                .replaceAll("(?ms)^ *```.*?^ *```$", "\n\n")
                .replaceAll("(?s)<picture>.*?</picture>", "");
        List<String> sentences = new ArrayList<>();
        StringBuilder paragraph = new StringBuilder();
        boolean afterBlank = true;
        boolean code = false;
        for (String line : text.split("\n", -1)) {
            code = line.isBlank()
                    ? code
                    : line.startsWith("    ")
                            && (afterBlank || code)
                            && !line.strip().startsWith("|");
            afterBlank = line.isBlank();
            if (afterBlank || code || line.matches(" *(?:[-*>] |#+ |\\||\\d+\\. ).*")) {
                split(paragraph.toString(), sentences);
                paragraph.setLength(0);
            }
            if (line.strip().startsWith("|")) {
                // The parts of a cell are no sentences, so a semicolon ends one.
                for (String cell : line.replaceAll("`[^`]*`", "X").split("\\||;", -1)) {
                    split(cell, sentences);
                }
            } else if (!code) {
                paragraph
                        .append(line.replaceFirst("^ *(?:[-*#>]+|\\d+\\.) ", ""))
                        .append(' ');
            }
        }
        split(paragraph.toString(), sentences);
        return sentences;
    }

    private static void split(String paragraph, List<String> sentences) {
        String text = paragraph
                .replaceAll("`[^`]*`", "X")
                .replaceAll("!?\\[([^\\]]*)]\\([^)]*\\)", "$1")
                .replaceAll("<https?:[^>]*>", "X")
                .replaceAll("\\s+", " ");
        for (String sentence : text.split("(?<=[.!?])[\")*]* (?=[\\p{Lu}\\d\"(*])")) {
            if (!sentence.isBlank()) {
                sentences.add(sentence.strip());
            }
        }
    }
}
