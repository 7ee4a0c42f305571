/** Jobs: adding, querying and managing them. */
@NullMarked
package dev.pgworker.job;

import org.jspecify.annotations.NullMarked;
