/*
 * codecs: the ops that send a gradient in fewer bytes. Private to src/rewrite.
 */
#ifndef SW_REWRITE_CODECS_H
#define SW_REWRITE_CODECS_H

#include "rewrite/rewrite.h"

/* The state that a codec reads and what it gives: values of the program that is written. */
typedef struct sw_coded {
	/* f32: [devices, dimensions of the gradient]; bf16, f16, int8: of the gradient; powersgd:
	 * sw_codec_factor_shape; else SW_NO_ID */
	sw_id residual_in, sum_residual_in, factor_in;
	sw_id residual, sum_residual, factor; /* their next values */
	sw_id sent; /* what readers get in place of the gradient: its shape and type */
} sw_coded;

/* Append the ops that code `gradient`, of which so many devices have terms, to computation c; the op
 * `terms` gets the name, and all of them the title, which lives as long as the program, as their
 * metadata. */
sw_status sw_codec_write(sw_program *p, int32_t c, sw_codec codec, int64_t devices, sw_id gradient,
                         const char *name, const char *title, sw_coded *coded, sw_error *err);
/* The shape of the factor that a low rank goes on from, in the program's arena. */
sw_shape sw_codec_factor_shape(sw_codec codec, sw_shape shape, sw_program *p);

/* Write the program in which gradients are coded as the forms say, and its sidecar
 * (code_gradients.c). As sw_rewrite_variables, after variables were divided: forms are of the
 * inputs that parts are of. */
sw_status sw_code_gradients(const sw_program *in, const sw_sidecar *sidecar,
                            const sw_variable_forms *forms, sw_program **out,
                            sw_sidecar *out_sidecar, sw_error *err);

#endif
