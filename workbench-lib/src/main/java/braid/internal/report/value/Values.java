package braid.internal.report.value;

import braid.model.MimeBundle;
import java.lang.reflect.Array;
import java.lang.reflect.InaccessibleObjectException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.StringJoiner;
import java.util.stream.BaseStream;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Renders records, collections, maps, arrays and streams: as tables if elements have several
/// components, and at most the first elements, with their number. Values with a `toString` of their
/// own are left to it.
public final class Values {
  public static final int DEFAULT_ELEMENTS = 20;

  private static final int CELL_LENGTH = 60;

  private final int limit;

  private Values(int limit) {
    this.limit = limit;
  }

  /// Returns the value with at most that number of elements; empty if it is none of these, or its
  /// own text is as good.
  public static Optional<MimeBundle> of(@Nullable Object value, int elements) {
    return new Values(elements).of(value);
  }

  private Optional<MimeBundle> of(@Nullable Object value) {
    return switch (value) {
      case Optional<?> valuesOf -> valuesOf.flatMap(this::of);
      case Map<?, ?> map -> map(map);
      case Collection<?> all -> elements(all.iterator(), OptionalInt.of(all.size()));
      case Object[] all -> elements(Arrays.asList(all).iterator(), OptionalInt.of(all.length));
      case BaseStream<?, ?> stream -> elements(stream.iterator(), OptionalInt.empty());
      case Record one when hasDefaultText(one) -> record(one);
      case Object array when array.getClass().isArray() -> numbers(array);
      case null, default -> Optional.empty();
    };
  }

  private Optional<MimeBundle> map(Map<?, ?> map) {
    if (map.isEmpty()) {
      return Optional.empty();
    }
    var rows = new ArrayList<List<@Nullable Object>>();
    for (var entry : map.entrySet()) {
      if (rows.size() == limit) {
        break;
      }
      rows.add(Arrays.asList(entry.getKey(), entry.getValue()));
    }
    return Optional.of(
        table(List.of("key", "value"), rows)
            .note(cut(rows.size(), OptionalInt.of(map.size())))
            .bundle());
  }

  /// Renders elements. A stream has no size: one more element is requested to see whether it has
  /// more than is shown.
  private Optional<MimeBundle> elements(Iterator<?> all, OptionalInt size) {
    var shown = new ArrayList<@Nullable Object>();
    while (shown.size() < limit && all.hasNext()) {
      shown.add(all.next());
    }
    boolean stream = size.isEmpty();
    var known = stream && !all.hasNext() ? OptionalInt.of(shown.size()) : size;
    var note = cut(shown.size(), known);
    var components = sameRecords(shown);
    if (!components.isEmpty()) {
      var names = components.stream().map(RecordComponent::getName).toList();
      var rows =
          shown.stream().map(each -> valuesOf(components, Objects.requireNonNull(each))).toList();
      return Optional.of(table(names, rows).note(note).bundle());
    }
    if (note.isEmpty() && !stream) {
      return Optional.empty();
    }
    return Optional.of(MimeBundle.text(list(shown, note)));
  }

  private Optional<MimeBundle> numbers(Object array) {
    int size = Array.getLength(array);
    if (size <= limit) {
      return Optional.empty();
    }
    var shown = IntStream.range(0, limit).mapToObj(i -> Array.get(array, i)).toList();
    return Optional.of(MimeBundle.text(list(shown, cut(limit, OptionalInt.of(size)))));
  }

  private static String list(List<? extends @Nullable Object> shown, String note) {
    var text = new StringJoiner(", ", "[", note.isEmpty() ? "]" : ", …]\n" + note);
    shown.forEach(each -> text.add(cell(each)));
    return text.toString();
  }

  private static String cut(int shown, OptionalInt size) {
    if (size.isEmpty()) {
      return String.format(Locale.ROOT, "first %,d of a stream that has more", shown);
    }
    return size.getAsInt() == shown
        ? ""
        : String.format(Locale.ROOT, "first %,d of %,d", shown, size.getAsInt());
  }

  private static Optional<MimeBundle> record(Record one) {
    var components = components(one.getClass());
    if (components.isEmpty()) {
      return Optional.empty();
    }
    var values = valuesOf(components, one);
    var grid = Grid.of("component", "value").title(one.getClass().getSimpleName());
    for (int i = 0; i < values.size(); i++) {
      grid.row(components.get(i).getName(), cell(values.get(i)));
    }
    return Optional.of(grid.bundle());
  }

  /// Returns the components of the elements if all are records of one class with the default text;
  /// else empty.
  private static List<RecordComponent> sameRecords(List<? extends @Nullable Object> elements) {
    if (elements.isEmpty()
        || !(elements.getFirst() instanceof Record first)
        || !elements.stream().allMatch(e -> e != null && e.getClass() == first.getClass())
        || !hasDefaultText(first)) {
      return List.of();
    }
    return components(first.getClass());
  }

  private static List<RecordComponent> components(Class<?> type) {
    try {
      var components = List.of(type.getRecordComponents());
      components.forEach(component -> component.getAccessor().setAccessible(true));
      return components;
    } catch (InaccessibleObjectException e) {
      return List.of(); // not open to reflection: only its text is available
    }
  }

  private static List<@Nullable Object> valuesOf(List<RecordComponent> components, Object one) {
    var values = new ArrayList<@Nullable Object>();
    for (var component : components) {
      try {
        values.add(component.getAccessor().invoke(one));
      } catch (IllegalAccessException e) {
        throw new IllegalStateException(component + " was made accessible", e);
      } catch (InvocationTargetException e) {
        throw new IllegalStateException(component + " cannot be read", e.getCause());
      }
    }
    return values;
  }

  /// Returns true if its `toString` is the default of records.
  private static boolean hasDefaultText(Record one) {
    var components = components(one.getClass());
    if (components.isEmpty()) {
      return false;
    }
    var defaultText = new StringJoiner(", ", one.getClass().getSimpleName() + "[", "]");
    var values = valuesOf(components, one);
    for (int i = 0; i < values.size(); i++) {
      defaultText.add(components.get(i).getName() + "=" + values.get(i));
    }
    return defaultText.toString().equals(one.toString());
  }

  private static Grid table(
      List<String> names, List<? extends List<? extends @Nullable Object>> rows) {
    var grid = Grid.of(names);
    for (int column = 0; column < names.size(); column++) {
      int index = column;
      if (rows.stream().allMatch(row -> row.get(index) instanceof Number)) {
        grid.rightAligned(column);
      }
    }
    rows.forEach(row -> grid.row(row.stream().map(Values::cell).toList()));
    return grid;
  }

  /// Returns the text of a cell; large collections show only their size.
  private static String cell(@Nullable Object value) {
    if (value instanceof Collection<?> many && many.size() > DEFAULT_ELEMENTS) {
      return String.format(Locale.ROOT, "%,d elements", many.size());
    }
    if (value instanceof Map<?, ?> many && many.size() > DEFAULT_ELEMENTS) {
      return String.format(Locale.ROOT, "%,d entries", many.size());
    }
    if (value != null && value.getClass().isArray()) {
      int size = Array.getLength(value);
      if (size > DEFAULT_ELEMENTS) {
        return String.format(Locale.ROOT, "%,d elements", size);
      }
      return oneLine(deep(value));
    }
    return oneLine(String.valueOf(value));
  }

  /// Returns the text of an array of any type.
  public static String deep(Object array) {
    var wrapped = Arrays.deepToString(new Object[] {array});
    return wrapped.substring(1, wrapped.length() - 1);
  }

  private static String oneLine(String text) {
    var line = text.replaceAll("\\R", " ");
    return line.length() <= CELL_LENGTH ? line : line.substring(0, CELL_LENGTH - 1) + "…";
  }
}
