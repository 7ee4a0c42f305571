package dev.pgworker.crontab;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** JSON5 as JavaScript's JSON.stringify gives it back. */
@Tag("any-postgres")
class Json5Test {

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{onboarding:false}|{\"onboarding\":false}",
                "{a:0x1F,b:-0xa}|{\"a\":31,\"b\":-10}",
                "{a:+1,b:.5,c:5.,d:1e-3}|{\"a\":1,\"b\":0.5,\"c\":5,\"d\":0.001}",
                "{a:NaN,b:+Infinity,c:-Infinity}|{\"a\":null,\"b\":null,\"c\":null}",
                "{a:'\\x41\\u0042'}|{\"a\":\"AB\"}",
                "{a:1,/* c */b:[1,],}// end|{\"a\":1,\"b\":[1]}",
                "{a:1,a:2}|{\"a\":2}",
                "{'a b':-0}|{\"a b\":0}",
                "{$_\\u0061:null}|{\"$_a\":null}",
            })
    void reads(String text, String expected) throws Exception {
        assertThat(Json5.parse(text)).hasToString(expected);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{1:2}",
                "{a:01}",
                "{a:1}x",
                "{a:}",
                "{a:'x}",
                "{,}",
                "{a:1 b:2}",
                "{a:'\\1'}",
                "{a:0x}",
                "{a:+ 1}",
                "{a"
            })
    void rejects(String text) {
        assertThatThrownBy(() -> Json5.parse(text)).isInstanceOf(Json5.InvalidJson5Exception.class);
    }

    @Test
    void continuesAString() throws Exception {
        assertThat(Json5.parse("'a\\\r\nb'").stringValue()).isEqualTo("ab");
    }
}
