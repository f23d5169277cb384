package braid.internal.report.json;

import braid.model.BraidException;
import braid.model.ChunkOrder;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Priority;
import braid.model.Transport;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.util.List;

/// A tuning as fields of a JSON object. All are written, also those that are as usual, since what
/// is usual may change. The first four are required; studies of Braid's first version had no
/// others, and what they lack is as it was then.
final class OverlapJson {
  private static final String[] FIELDS = {
    "method",
    "splits",
    "streams",
    "transport",
    "boundaries",
    "order",
    "workers",
    "priority",
    "replayed",
    "symmetricOutput"
  };

  private OverlapJson() {}

  /// The names of its fields and of `others` beside them.
  static String[] fieldsAnd(String... others) {
    var names = new String[FIELDS.length + others.length];
    System.arraycopy(FIELDS, 0, names, 0, FIELDS.length);
    System.arraycopy(others, 0, names, FIELDS.length, others.length);
    return names;
  }

  static void write(JsonWriter json, Overlap how) throws IOException {
    json.name("method").value(how.method().name());
    json.name("splits").value(how.splits());
    json.name("streams").value(how.streams());
    json.name("transport").value(how.transport().name());
    json.name("boundaries").beginArray();
    for (int row : how.boundaries()) {
      json.value(row);
    }
    json.endArray();
    json.name("order").value(how.order().name());
    json.name("workers").value(how.workers());
    json.name("priority").value(how.priority().name());
    json.name("replayed").value(how.replayed());
    json.name("symmetricOutput").value(how.symmetricOutput());
  }

  static Overlap read(JsonFields fields) {
    var method = fields.oneOf("method", Method.values());
    var transport = fields.oneOf("transport", Transport.values());
    int splits = fields.whole("splits");
    int streams = fields.whole("streams");
    var boundaries = fields.has("boundaries") ? fields.wholes32("boundaries") : List.<Integer>of();
    var order =
        fields.has("order") ? fields.oneOf("order", ChunkOrder.values()) : ChunkOrder.NEXT_FIRST;
    int workers = fields.has("workers") ? fields.whole("workers") : 0;
    var priority =
        fields.has("priority")
            ? fields.oneOf("priority", Priority.values())
            : Priority.COMMUNICATION;
    boolean replayed = fields.has("replayed") && fields.truth("replayed");
    boolean symmetricOutput = fields.has("symmetricOutput") && fields.truth("symmetricOutput");
    try {
      return new Overlap(
          method,
          splits,
          boundaries,
          streams,
          order,
          transport,
          workers,
          priority,
          replayed,
          symmetricOutput);
    } catch (BraidException e) {
      throw new BraidException(fields.what() + ": " + e.getMessage(), e);
    }
  }
}
