package braid.internal.json;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RecordJsonTest {
  private static final String FORMAT = "sample/1";

  private record Sample(
      int count,
      double seconds,
      SequencedMap<String, Long> bytes,
      Optional<String> note,
      List<List<Long>> rows) {}

  private static final RecordJson JSON =
      new RecordJson()
          .leavingOut(Sample.class, Map.of("note", Optional.empty(), "rows", List.of()));

  private static Sample read(String json) {
    return JSON.read("sample", RecordJson.document("sample", FORMAT, json), Sample.class);
  }

  private static String written(Sample sample) {
    return JSON.write(FORMAT, sample).toString();
  }

  private static Sample sample(Optional<String> note, List<List<Long>> rows) {
    var bytes = new LinkedHashMap<String, Long>();
    bytes.put("b", Long.MAX_VALUE);
    bytes.put("a", -1L);
    return new Sample(3, 0.1, bytes, note, rows);
  }

  @Test
  void recordsComeBackAsWritten() {
    var full = sample(Optional.of("x"), List.of(List.of(1L, 2L), List.of()));
    assertThat(read(written(full))).isEqualTo(full);
    assertThat(read(written(full)).bytes().keySet()).containsExactly("b", "a");
  }

  @Test
  void usualValuesAreLeftOut() {
    var plain = sample(Optional.empty(), List.of());
    assertThat(written(plain))
        .isEqualTo(
            "{\"format\":\"sample/1\",\"count\":3,\"seconds\":0.1,"
                + "\"bytes\":{\"b\":9223372036854775807,\"a\":-1}}");
    assertThat(read(written(plain))).isEqualTo(plain);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '~',
      value = {
        ":3   | :3.5                  | sample.count must be a whole number but was 3.5",
        ":3   | :3e9                  | sample.count must be a whole number but was 3e9",
        ":3   | :\"3\"                | sample.count must be a whole number but was \"3\"",
        ":3   | :null                 | sample.count must be a whole number but was null",
        ":3   | :3,\"count\":3        | sample must be JSON but is not: line 1 column 39 ($.count): field"
            + " `count` is given twice; correct that place",
        "0.1  | NaN                  | sample must be JSON but is not: line 1 column 42",
        "0.1  | 1e999                | sample.seconds must be a number but was 1e999",
        "-1   | \"x\"                | sample.bytes.a must be a whole number but was \"x\"",
        "-1}  | -1},\"more\":1       | sample: unknown field `more`; known are count, seconds, bytes,",
        "-1}  | -1},\"rows\":[[1],2] | sample.rows[1] must be a list but was 2",
        "-1}} | -1}} {}              | sample must be JSON but is not: line 1 column",
        "\"sample/1\" | \"sample/2\" | sample: field `format` must be \"sample/1\" but was \"sample/2\";",
        "count\"   | cont\"           | sample: unknown field `cont`; known are count,",
      })
  void wrongDocumentIsRefusedInOneLine(String right, String wrong, String message) {
    var json = written(sample(Optional.empty(), List.of()));
    assertThat(json).contains(right);
    assertThatThrownBy(() -> read(json.replace(right, wrong)))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith(message)
        .message()
        .doesNotContain("\n");
  }
}
