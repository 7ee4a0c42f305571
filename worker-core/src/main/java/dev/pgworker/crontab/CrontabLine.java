package dev.pgworker.crontab;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

import dev.pgworker.internal.pattern.CronField;

/**
 * The words with which a line of a crontab begins, as far as they show what belongs to the pattern and what follows it.
 *
 * @param text the line without the space around it
 * @param words the first words, more than a pattern of any grammar has fields
 */
record CrontabLine(String text, List<Word> words) {

    static final int FIELDS = CronField.ALL.size();

    private static final Pattern TASK = Pattern.compile("[_a-zA-Z][_a-zA-Z0-9:/_-]*");
    private static final Pattern FIELD_OF_ANY_GRAMMAR = Pattern.compile("(?i)(?:[0-9*/,?#-]|MON|TUE|WED|THU|FRI|SAT|SUN"
            + "|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC|L|W)+");

    private static final int LONGEST_WITH_NAMES = 200;

    /** As many words as are looked at. */
    private static final int WORDS = 10;

    /**
     * A word.
     *
     * @param start its place in the line, from 0
     */
    record Word(String text, int start) {

        int end() {
            return start + text.length();
        }

        boolean isTask() {
            return TASK.matcher(text).matches();
        }

        private boolean isField() {
            return text.chars().allMatch(c -> "0123456789*/,-?#".indexOf(c) >= 0)
                    || (text.length() <= LONGEST_WITH_NAMES
                            && FIELD_OF_ANY_GRAMMAR.matcher(text).matches());
        }

        private boolean followsTask() {
            return text.startsWith("?") || text.startsWith("{");
        }
    }

    static CrontabLine of(String text) {
        List<Word> words = new ArrayList<>();
        int at = skipSpace(text, 0);
        while (at < text.length() && words.size() < WORDS) {
            int end = skipWord(text, at);
            words.add(new Word(text.substring(at, end), at));
            at = skipSpace(text, end);
        }
        return new CrontabLine(text, words);
    }

    static int skipSpace(String text, int from) {
        int at = from;
        while (at < text.length() && Json5.isSpace(text.charAt(at))) {
            at++;
        }
        return at;
    }

    static int skipWord(String text, int from) {
        int at = from;
        while (at < text.length() && !Json5.isSpace(text.charAt(at))) {
            at++;
        }
        return at;
    }

    Word task() {
        return words.get(FIELDS);
    }

    /** Returns whether five words may be meant as the pattern, right or wrong, and another as the task. */
    boolean hasPattern() {
        if (words.size() <= FIELDS || words.get(0).text().startsWith("@")) {
            return false;
        }
        int fields = fields();
        // Four fields, the task, and what may follow it; but no other word does.
        return fields == FIELDS || (fields < FIELDS && !words.get(fields + 1).followsTask());
    }

    /** Returns how many words before the task look like fields, in this grammar or another. */
    int fields() {
        int fields = 0;
        while (fields < words.size() && words.get(fields).isField()) {
            fields++;
        }
        boolean taskLooksLikeField = fields > 0
                && (fields == words.size() || words.get(fields).followsTask())
                && words.get(fields - 1).isTask();
        return taskLooksLikeField ? fields - 1 : fields;
    }
}
