package kotlin.coroutines;

/** Stands in for the last parameter of a Kotlin suspend function: the type is recognised by its name. */
public interface Continuation<T> {}
