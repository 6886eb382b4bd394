/* links: kernels that are different because a way leads through a product from one to the next. Private
 * to src/bound. */
#ifndef SW_BOUND_LINKS_H
#define SW_BOUND_LINKS_H

#include "bound/marks.h"

/* Return seconds of the kernels of a computation that no device does less of, beside those of its
 * products and of the ends of kernels. O(uses). */
double sw_bound_links_s(const division *d, const sw_computation *computation,
                        const sw_bound_marks *marks, const sw_bound_loop *loop);

#endif
