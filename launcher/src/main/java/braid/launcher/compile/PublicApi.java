package braid.launcher.compile;

import java.lang.module.ModuleFinder;
import java.lang.reflect.Executable;
import java.lang.reflect.Member;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Public classes and members that a session's imports make usable, by reflection.
final class PublicApi {
  /// A member or a type, as a cell writes it: `GemmSpec.allGatherGemm`, or `BF16` if it is imported
  /// statically.
  ///
  /// @param simple its own name, which a mistyped one is compared with
  record Name(String simple, String written) {}

  private static final String ALL = ".*";

  /// Packages that cells import to work with tables and charts, and Braid's own.
  private static final List<String> LIBRARIES =
      List.of(
          "braid",
          "braid.evidence",
          "braid.export",
          "braid.model",
          "braid.schedule",
          "braid.schedule.simulation",
          "braid.shapes",
          "braid.selftest",
          "tech.tablesaw.aggregate",
          "tech.tablesaw.api",
          "org.jfree.chart",
          "org.jfree.chart.plot",
          "org.jfree.data.category",
          "org.jfree.data.xy");

  private static final String JDK = "java.";

  /// Classes of Braid and its libraries.
  private final List<Class<?>> classes;

  /// Full names of classes of the JDK, some of which are not public. They are many, and loaded only
  /// when they are needed.
  private final List<String> jdk;

  private final List<Class<?>> importedStatically;

  /// @param imports full names of imports that are not static: classes, or packages with `.*`
  /// @param staticImports full names of static imports
  /// @param classesOf returns the binary names of the classes of a package
  PublicApi(
      Collection<String> imports,
      Collection<String> staticImports,
      Function<String, List<String>> classesOf) {
    var names =
        Stream.concat(Stream.of("java.lang" + ALL), imports.stream())
            .flatMap(
                name ->
                    name.endsWith(ALL)
                        ? classesOf.apply(withoutEnd(name)).stream()
                        : Stream.of(name))
            .distinct()
            .toList();
    jdk = names.stream().filter(name -> name.startsWith(JDK) && !name.contains("$")).toList();
    classes =
        names.stream()
            .filter(name -> !name.startsWith(JDK))
            .flatMap(name -> load(name).stream())
            .filter(PublicApi::isPublic)
            .distinct()
            .toList();
    importedStatically =
        staticImports.stream()
            .filter(name -> name.endsWith(ALL))
            .map(PublicApi::withoutEnd)
            .flatMap(name -> load(name).stream())
            .distinct()
            .toList();
  }

  private static String withoutEnd(String name) {
    return name.substring(0, name.lastIndexOf('.'));
  }

  /// Returns the class of a name as the compiler prints it; nested classes follow a dot.
  static Optional<Class<?>> load(String name) {
    for (var binary = name; ; ) {
      try {
        return Optional.of(Class.forName(binary, false, PublicApi.class.getClassLoader()));
      } catch (LinkageError e) {
        return Optional.empty(); // a class of the user's jars that lacks another one
      } catch (ClassNotFoundException e) {
        int dot = binary.lastIndexOf('.');
        if (dot < 0) {
          return Optional.empty();
        }
        binary = binary.substring(0, dot) + "$" + binary.substring(dot + 1);
      }
    }
  }

  /// Returns a class's public methods; none if it refers to classes that do not exist.
  static Stream<Method> methods(Class<?> type) {
    try {
      return Arrays.stream(type.getMethods());
    } catch (LinkageError e) {
      return Stream.empty();
    }
  }

  private static boolean isPublic(Class<?> type) {
    for (Class<?> each = type; each != null; each = each.getEnclosingClass()) {
      if (!Modifier.isPublic(each.getModifiers())) {
        return false;
      }
    }
    return true;
  }

  Optional<Class<?>> type(String simpleName) {
    return classes.stream()
        .filter(type -> written(type).equals(simpleName))
        .findFirst()
        .or(
            () ->
                jdk.stream()
                    .filter(name -> name.endsWith("." + simpleName))
                    .flatMap(name -> load(name).stream())
                    .findFirst());
  }

  List<Name> types() {
    return Stream.concat(
            classes.stream().map(type -> new Name(type.getSimpleName(), written(type))),
            jdk.stream()
                .map(name -> name.substring(name.lastIndexOf('.') + 1))
                .map(name -> new Name(name, name)))
        .toList();
  }

  /// Returns static fields, which include the constants of enums.
  List<Name> constants() {
    return statics(type -> Arrays.stream(type.getFields()));
  }

  /// Returns static methods.
  List<Name> functions() {
    return statics(type -> methods(type));
  }

  private List<Name> statics(Function<Class<?>, Stream<? extends Member>> members) {
    var names = new ArrayList<Name>();
    for (var type : importedStatically) {
      members
          .apply(type)
          .filter(PublicApi::isStatic)
          .forEach(member -> names.add(new Name(member.getName(), member.getName())));
    }
    for (var type : classes) {
      members
          .apply(type)
          .filter(PublicApi::isStatic)
          .filter(member -> !importedStatically.contains(type))
          .forEach(member -> names.add(qualified(type, member)));
    }
    return names.stream().distinct().toList();
  }

  /// Returns a class's members that may be meant by a mistyped one: static ones with its name.
  ///
  /// @param kind kind of the mistyped one: `variable`, `method` or `class`
  static List<Name> members(Class<?> type, String kind) {
    var members = new ArrayList<Name>();
    boolean isCall = kind.equals("method");
    for (var method : methods(type).toList()) {
      var name = member(type, method);
      members.add(isCall ? name : new Name(name.simple(), name.written() + "()"));
    }
    if (!isCall) {
      for (var field : type.getFields()) {
        members.add(member(type, field));
      }
      for (var nested : type.getClasses()) {
        members.add(new Name(nested.getSimpleName(), written(nested)));
      }
    }
    return members.stream().distinct().toList();
  }

  private static Name member(Class<?> type, Member member) {
    return isStatic(member)
        ? qualified(type, member)
        : new Name(member.getName(), member.getName());
  }

  private static Name qualified(Class<?> type, Member member) {
    return new Name(member.getName(), written(type) + "." + member.getName());
  }

  private static boolean isStatic(Member member) {
    return Modifier.isStatic(member.getModifiers());
  }

  /// Returns the name with those of enclosing classes, without the package.
  static String written(Class<?> type) {
    var enclosing = type.getEnclosingClass();
    return (enclosing == null ? "" : written(enclosing) + ".") + type.getSimpleName();
  }

  /// Returns true if a cell cannot call any constructor.
  static boolean hasNoConstructor(Class<?> type) {
    return !type.isInterface() && type.getConstructors().length == 0;
  }

  /// Returns calls of the type's static factories, and of those of its builder.
  ///
  /// @param argument returns a value to show for a parameter of a type
  static List<String> factories(Class<?> type, Function<Class<?>, Optional<String>> argument) {
    return methods(type)
        .filter(PublicApi::isStatic)
        .filter(
            method ->
                method.getReturnType() == type
                    || method.getReturnType().getEnclosingClass() == type)
        .map(method -> call(type, method, argument))
        .distinct()
        .sorted()
        .toList();
  }

  /// Returns methods of other types that return a value of the type, the shortest first.
  List<String> sources(Class<?> type) {
    return classes.stream()
        .filter(other -> other != type)
        .flatMap(
            other ->
                methods(other)
                    .filter(method -> method.getDeclaringClass() == other)
                    .filter(method -> Modifier.isPublic(method.getModifiers()))
                    .filter(method -> method.getReturnType() == type)
                    .map(method -> call(other, method, _ -> Optional.empty())))
        .distinct()
        .sorted(Comparator.comparingInt(String::length).thenComparing(Comparator.naturalOrder()))
        .toList();
  }

  static boolean hasField(Class<?> type, String name) {
    return Arrays.stream(type.getFields()).anyMatch(field -> field.getName().equals(name));
  }

  /// Returns the constants of a class, as its static import allows.
  static List<Name> constants(Class<?> type) {
    return Arrays.stream(type.getFields())
        .filter(PublicApi::isStatic)
        .filter(field -> field.getType() == type)
        .map(field -> qualified(type, field))
        .toList();
  }

  /// Returns the names of static methods that make a value of the class, unless it is a basic one.
  static List<String> makers(Class<?> type) {
    return methods(type)
        .filter(_ -> !type.getName().startsWith("java.lang."))
        .filter(PublicApi::isStatic)
        .filter(method -> method.getReturnType() == type)
        .map(method -> written(type) + "." + method.getName())
        .distinct()
        .sorted()
        .toList();
  }

  /// Returns the methods of a class that have a name, with the types of their parameters, and the
  /// names if the class has them.
  static List<String> signatures(Class<?> type, String name) {
    return methods(type)
        .filter(method -> method.getName().equals(name))
        .map(
            method ->
                Arrays.stream(method.getParameters())
                    .map(
                        each ->
                            each.getType().getSimpleName()
                                + (each.isNamePresent() ? " " + each.getName() : ""))
                    .collect(
                        Collectors.joining(
                            ", ",
                            "`" + (isStatic(method) ? written(type) + "." : "") + name + "(",
                            ")`")))
        .distinct()
        .sorted(Comparator.comparingInt(String::length))
        .toList();
  }

  /// Returns `getter().name` for each method that a getter's result has under a name.
  ///
  /// @param plain reduces a name to what is compared
  static List<String> paths(Class<?> type, String wanted, UnaryOperator<String> plain) {
    return methods(type)
        .filter(getter -> !isStatic(getter) && getter.getParameterCount() == 0)
        .filter(getter -> !getter.getReturnType().isPrimitive())
        .filter(getter -> getter.getReturnType() != type)
        .flatMap(
            getter ->
                instanceMethods(getter.getReturnType(), wanted, plain)
                    .map(name -> getter.getName() + "()." + name))
        .distinct()
        .sorted(Comparator.comparingInt(String::length).thenComparing(Comparator.naturalOrder()))
        .toList();
  }

  /// Returns `Type.factory(%s).name` for each class that is made from a type and has a method with
  /// a name.
  List<String> made(Class<?> type, String wanted, UnaryOperator<String> plain) {
    return classes.stream()
        .flatMap(
            other ->
                methods(other)
                    .filter(PublicApi::isStatic)
                    .filter(factory -> factory.getReturnType() == other)
                    .filter(
                        factory ->
                            factory.getParameterCount() == 1
                                && factory.getParameterTypes()[0].isAssignableFrom(type))
                    .flatMap(
                        factory ->
                            instanceMethods(other, wanted, plain)
                                .map(
                                    name ->
                                        written(other) + "." + factory.getName() + "(%s)." + name)))
        .distinct()
        .toList();
  }

  private static Stream<String> instanceMethods(
      Class<?> type, String wanted, UnaryOperator<String> plain) {
    return methods(type)
        .filter(method -> !isStatic(method) && method.getDeclaringClass() != Object.class)
        .map(Method::getName)
        .filter(name -> plain.apply(name).equals(wanted));
  }

  /// Returns the full names of public classes with a simple name: of the JDK, and of the libraries
  /// that Braid's values come from.
  static List<String> named(String simpleName, Function<String, List<String>> classesOf) {
    var jdk =
        ModuleFinder.ofSystem().findAll().stream()
            .filter(module -> module.descriptor().name().startsWith("java."))
            .flatMap(module -> module.descriptor().exports().stream())
            .filter(exported -> !exported.isQualified())
            .map(exported -> exported.source() + "." + simpleName)
            .flatMap(name -> load(name).stream());
    var libraries =
        LIBRARIES.stream()
            .flatMap(name -> classesOf.apply(name).stream())
            .filter(name -> name.endsWith("." + simpleName))
            .flatMap(name -> load(name).stream());
    return Stream.concat(libraries, jdk)
        .filter(PublicApi::isPublic)
        .map(Class::getCanonicalName)
        .distinct()
        .sorted(Comparator.comparing((String name) -> !name.startsWith("java.util")))
        .toList();
  }

  private static String call(
      Class<?> type, Method method, Function<Class<?>, Optional<String>> argument) {
    return written(type) + "." + method.getName() + "(" + arguments(method, argument) + ")";
  }

  private static String arguments(
      Executable method, Function<Class<?>, Optional<String>> argument) {
    var values = Arrays.stream(method.getParameterTypes()).map(argument).toList();
    if (values.stream().anyMatch(Optional::isEmpty)) {
      return "…";
    }
    return String.join(", ", values.stream().map(Optional::orElseThrow).toList());
  }
}
