/** A small web application that adds jobs and runs them. */
@NullMarked
package dev.pgworker.samples.quickstart;

import org.jspecify.annotations.NullMarked;
